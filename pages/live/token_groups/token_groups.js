// Token text is data: it reaches the page through textContent only.

const SETTLE_MS = 120; // while arrow keys repeat, only the position they end at is sent

function line(tag, name, text) {
  const element = document.createElement(tag);
  element.className = name;
  element.textContent = text;
  return element;
}

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

function groupOf(group, selectable) {
  const element = document.createElement("span");
  element.className = group.text ? "group shared" : "group";
  element.setAttribute("role", "presentation");
  if (group.text) element.append(line("bdi", "whole", group.text));
  const chips = document.createElement("span");
  chips.className = "chips";
  chips.setAttribute("role", "presentation");
  chips.append(...group.chips.map((chip) => chipOf(chip, selectable)));
  element.append(chips);
  return element;
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".groups");
  const drawn = JSON.stringify([data.groups, data.selectable]);
  if (root.drawn !== drawn) {
    root.replaceChildren(...data.groups.map((group) => groupOf(group, data.selectable)));
    root.drawn = drawn;
  }
  root.setAttribute("role", data.selectable ? "listbox" : "list");
  root.setAttribute("aria-label", data.label);
  if (!data.selectable) return;

  const chips = [...root.querySelectorAll(".chip")];
  const mark = (position) => {
    chips.forEach((chip, index) => {
      chip.setAttribute("aria-selected", String(index === position));
      chip.tabIndex = index === (position ?? 0) ? 0 : -1;
    });
    root.position = position;
  };
  const choose = (position, delay) => {
    mark(position);
    clearTimeout(root.timer);
    root.timer = setTimeout(() => setTriggerValue("position", position), delay);
    root.pendingUntil = performance.now() + delay + 50;
  };
  // A rerun that was already under way must not undo a choice made meanwhile.
  if (!(performance.now() < (root.pendingUntil ?? 0))) mark(data.selected);

  chips.forEach((chip, index) => {
    chip.onclick = () => choose(index, 0);
  });
  root.onkeydown = (event) => {
    const now = root.position ?? 0;
    const steps = { ArrowLeft: now - 1, ArrowUp: now - 1, ArrowRight: now + 1, ArrowDown: now + 1, Home: 0 };
    const next = event.key === "End" ? chips.length - 1 : steps[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const position = Math.min(Math.max(next, 0), chips.length - 1);
    chips[position].focus();
    choose(position, SETTLE_MS);
  };
}
