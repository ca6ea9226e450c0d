import { choosable, line, redraw } from "../chips.js";
import { newest } from "../newest.js";

function chipOf(chip, selectable) {
  const element = document.createElement(selectable ? "button" : "span");
  element.className = "chip";
  element.style.setProperty("--hue", chip.colour);
  element.append(line("bdi", "text", chip.text), line("span", "bytes", chip.bytes), line("span", "id", chip.id));
  element.title = chip.whole;
  element.setAttribute("role", selectable ? "option" : "listitem");
  element.setAttribute("aria-label", `${chip.position}: ${chip.text} (${chip.bytes}; ${chip.id})`);
  return element;
}

function groupOf({ text, chips, selectable }) {
  const element = document.createElement("span");
  element.className = text ? "group shared" : "group";
  element.setAttribute("role", "presentation");
  if (text) element.append(line("bdi", "whole", text));
  const inside = document.createElement("span");
  inside.className = "chips";
  inside.setAttribute("role", "presentation");
  inside.append(...chips.map((chip) => chipOf(chip, selectable)));
  element.append(inside);
  return element;
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".groups");
  const { groups, label, selectable, selected } = data;
  redraw(root, groups.map((group) => ({ ...group, selectable })), groupOf);
  root.setAttribute("role", selectable ? "listbox" : "list");
  root.setAttribute("aria-label", label);
  if (!selectable) return;
  const chips = [...root.querySelectorAll(".chip")];
  const { isCurrent, send } = newest(root, data, setTriggerValue);
  choosable(root, chips, selected ?? -1, isCurrent, (place) => send("position", place));
}
