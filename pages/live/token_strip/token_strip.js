// Token text is data: it reaches the page through textContent only.

const SETTLE_MS = 120; // while arrow keys repeat, only the position they end at is sent

function build(strip, data) {
  strip.replaceChildren(
    ...data.chips.map((chip, index) => {
      const element = document.createElement(data.selectable ? "button" : "span");
      element.className = "chip";
      element.style.setProperty("--hue", chip.colour);
      if (chip.strength !== undefined) element.style.setProperty("--strength", chip.strength);
      const text = document.createElement("bdi");
      text.className = "text";
      text.textContent = chip.text;
      const caption = document.createElement("span");
      caption.className = "caption";
      caption.textContent = chip.caption;
      element.append(text, caption);
      element.setAttribute("role", data.selectable ? "option" : "listitem");
      element.setAttribute("aria-label", `${index + data.first}: ${chip.text} (${chip.caption})`);
      return element;
    })
  );
}

export default function ({ data, parentElement, setTriggerValue }) {
  const strip = parentElement.querySelector(".strip");
  const drawn = JSON.stringify([data.chips, data.selectable, data.first]);
  if (strip.drawn !== drawn) {
    const hadFocus = strip.contains(parentElement.activeElement ?? document.activeElement);
    build(strip, data);
    strip.drawn = drawn;
    if (hadFocus) strip.children[data.selected ?? 0]?.focus();
  }
  strip.setAttribute("role", data.selectable ? "listbox" : "list");
  strip.setAttribute("aria-label", data.label);
  if (!data.selectable) return;

  const chips = [...strip.children];
  const mark = (position) => {
    chips.forEach((chip, index) => {
      chip.setAttribute("aria-selected", String(index === position));
      chip.tabIndex = index === (position ?? 0) ? 0 : -1;
    });
    strip.position = position;
  };
  const choose = (position, delay) => {
    mark(position);
    clearTimeout(strip.timer);
    strip.timer = setTimeout(() => setTriggerValue("position", position), delay);
    strip.pendingUntil = performance.now() + delay + 50;
  };
  // A rerun that was already under way must not undo a choice made meanwhile.
  if (!(performance.now() < (strip.pendingUntil ?? 0))) mark(data.selected);

  chips.forEach((chip, index) => {
    chip.onclick = () => choose(index, 0);
  });
  strip.onkeydown = (event) => {
    const now = strip.position ?? 0;
    const steps = { ArrowLeft: now - 1, ArrowUp: now - 1, ArrowRight: now + 1, ArrowDown: now + 1, Home: 0 };
    const next = event.key === "End" ? chips.length - 1 : steps[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const position = Math.min(Math.max(next, 0), chips.length - 1);
    chips[position].focus();
    choose(position, SETTLE_MS);
  };
}
