// A grid of switches. Names and hints are data: they reach the page through textContent and attributes only.
import { every } from "../newest.js";

function head(text) {
  const element = document.createElement("span");
  element.className = "head";
  element.textContent = text;
  return element;
}

export default function ({ data, parentElement, setTriggerValue }) {
  const grid = parentElement.querySelector(".grid");
  const send = every(grid, data, setTriggerValue);
  const drawn = JSON.stringify([data.columns, data.rows, data.label]);
  if (grid.drawn === drawn) return;
  grid.drawn = drawn;
  grid.setAttribute("aria-label", data.label);
  grid.style.setProperty("--columns", data.columns.length);

  const active = parentElement.activeElement ?? document.activeElement;
  const focused = grid.contains(active) ? active.dataset.choice : undefined;

  const button = (cell, className, text = "") => {
    const element = document.createElement("button");
    element.type = "button";
    element.className = className;
    element.textContent = text;
    element.title = cell.hint;
    element.dataset.choice = cell.choice;
    element.setAttribute("aria-label", cell.hint);
    element.setAttribute("aria-pressed", String(cell.off));
    if (cell.strength !== null) element.style.setProperty("--strength", `${Math.round(cell.strength * 100)}%`);
    element.onclick = () => send("choice", cell.choice);
    return element;
  };

  grid.replaceChildren(
    head(""),
    ...data.columns.map(head),
    ...data.rows.flatMap((row) => [
      button(row.whole, "whole", row.name),
      ...row.cells.map((cell) => button(cell, "cell")),
    ])
  );
  if (focused) [...grid.querySelectorAll("button")].find((element) => element.dataset.choice === focused)?.focus();

  // Arrow keys go from switch to switch; a row is its name and its cells.
  const buttons = [...grid.querySelectorAll("button")];
  const across = data.columns.length + 1;
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across };
  grid.onkeydown = (event) => {
    const step = steps[event.key];
    const place = buttons.indexOf(event.target);
    if (step === undefined || place < 0) return;
    event.preventDefault();
    buttons[place + step]?.focus();
  };
}
