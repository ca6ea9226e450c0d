import { choosable, line, redraw } from "../chips.js";
import { newest } from "../newest.js";

function build(chip) {
  const element = document.createElement(chip.selectable ? "button" : "span");
  element.className = "chip";
  element.style.setProperty("--hue", chip.colour);
  if (chip.strength !== undefined) element.style.setProperty("--strength", chip.strength);
  element.append(line("bdi", "text", chip.text), line("span", "caption", chip.caption));
  element.setAttribute("role", chip.selectable ? "option" : "listitem");
  element.setAttribute("aria-label", `${chip.position}: ${chip.text} (${chip.caption})`);
  return element;
}

export default function ({ data, parentElement, setTriggerValue }) {
  const strip = parentElement.querySelector(".strip");
  const { chips, label, selectable, selected } = data;
  redraw(strip, chips.map((chip) => ({ ...chip, selectable })), build);
  strip.setAttribute("role", selectable ? "listbox" : "list");
  strip.setAttribute("aria-label", label);
  if (!selectable) return;
  const { isCurrent, send } = newest(strip, data, setTriggerValue);
  choosable(strip, [...strip.children], selected ?? -1, isCurrent, (place) => send("position", place));
}
