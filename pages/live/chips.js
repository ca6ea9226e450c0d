// What parts share that show tokens as chips, one of which can be chosen by the pointer or by the arrow keys.
// Token text is data: it reaches the page through textContent and attributes only.

const SETTLE_MS = 150; // while arrow keys repeat, only the chip they end at is told

export function line(tag, className, text) {
  const element = document.createElement(tag);
  element.className = className;
  element.textContent = text;
  return element;
}

// Draws anew only what changed: a text that grows keeps its place, its focus and the reader's pointer.
export function redraw(root, items, build) {
  items.forEach((item, index) => {
    const drawn = JSON.stringify(item);
    const old = root.children[index];
    if (old?.drawn === drawn) return;
    const element = build(item, index);
    element.drawn = drawn;
    if (!old) {
      root.append(element);
      return;
    }
    const hadFocus = old.contains(root.getRootNode().activeElement);
    old.replaceWith(element);
    if (hadFocus) (element.matches("button") ? element : element.querySelector("button"))?.focus();
  });
  while (root.children.length > items.length) root.lastChild.remove();
}

// Makes one of the options choosable. selected: its place among them, -1 for none, which counts unless it is older than
// what the reader chose (see newest.js); tell(place): the reader chose.
export function choosable(root, options, selected, isCurrent, tell) {
  const mark = (place) => {
    options.forEach((option, index) => {
      option.setAttribute("aria-selected", String(index === place));
      option.tabIndex = index === Math.max(place, 0) ? 0 : -1;
    });
    if (place !== root.place && options[place]) reveal(root, options[place]);
    root.place = place;
  };
  const choose = (place, delay) => {
    mark(place);
    clearTimeout(root.timer);
    root.timer = setTimeout(() => {
      root.timer = null;
      tell(place);
    }, delay);
  };
  mark(root.timer || !isCurrent ? root.place : selected);

  options.forEach((option, index) => {
    option.onclick = () => choose(index, 0);
  });
  root.onkeydown = (event) => {
    const now = Math.max(root.place, 0);
    const steps = { ArrowLeft: now - 1, ArrowUp: now - 1, ArrowRight: now + 1, ArrowDown: now + 1, Home: 0 };
    const next = event.key === "End" ? options.length - 1 : steps[event.key];
    if (next === undefined || !options.length) return;
    event.preventDefault();
    const place = Math.min(Math.max(next, 0), options.length - 1);
    options[place].focus({ preventScroll: true });
    choose(place, SETTLE_MS);
  };
}

// Scrolls the box, and never the page around it, until the chip is in view, with the group it belongs to.
function reveal(root, option) {
  const group = [...root.children].find((child) => child.contains(option));
  const [box, chip] = [root.getBoundingClientRect(), group.getBoundingClientRect()];
  if (chip.top < box.top) root.scrollTop -= box.top - chip.top;
  else if (chip.bottom > box.bottom) root.scrollTop += chip.bottom - box.bottom;
}
