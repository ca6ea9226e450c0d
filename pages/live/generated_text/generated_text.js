// Token text is data: it reaches the page through textContent only.

const SETTLE_MS = 150; // while arrow keys repeat, only the token they end at is sent

function line(tag, name, text) {
  const element = document.createElement(tag);
  element.className = name;
  element.textContent = text;
  return element;
}

function build(token, index) {
  const fixed = token.kind === "prompt";
  const element = document.createElement(fixed ? "span" : "button");
  element.className = `token ${token.kind}`;
  element.style.setProperty("--strength", token.strength);
  element.append(line("bdi", "text", token.token), line("span", "caption", token.caption));
  element.title = token.hint;
  element.dataset.index = index;
  if (fixed) {
    element.setAttribute("role", "presentation");
    return element;
  }
  element.setAttribute("role", "option");
  element.setAttribute("aria-label", `${token.token} ${token.hint}`);
  return element;
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".generated");
  root.setAttribute("role", "listbox");
  root.setAttribute("aria-label", data.label);
  // Only what changed is drawn anew: a text that grows keeps its place, its focus and the reader's pointer.
  data.tokens.forEach((token, index) => {
    const drawn = JSON.stringify(token);
    const old = root.children[index];
    if (old?.drawn === drawn) return;
    const element = build(token, index);
    element.drawn = drawn;
    if (old) {
      const hadFocus = old === (root.getRootNode().activeElement ?? null);
      old.replaceWith(element);
      if (hadFocus) element.focus();
    } else root.append(element);
  });
  while (root.children.length > data.tokens.length) root.lastChild.remove();
  if (root.length !== data.tokens.length) root.scrollTop = root.scrollHeight;
  root.length = data.tokens.length;

  const options = [...root.querySelectorAll("[role=option]")];
  const mark = (index) => {
    for (const option of options) {
      option.setAttribute("aria-selected", String(Number(option.dataset.index) === index));
      option.tabIndex = Number(option.dataset.index) === (index ?? Number(options[0].dataset.index)) ? 0 : -1;
    }
    root.chosen = index;
  };
  const choose = (index, delay) => {
    mark(index);
    clearTimeout(root.timer);
    root.timer = setTimeout(() => setTriggerValue("index", index), delay);
    root.pendingUntil = performance.now() + delay + 300;
  };
  // A rerun that was already under way must not undo a choice made meanwhile.
  mark(performance.now() < (root.pendingUntil ?? 0) ? root.chosen : data.selected);

  for (const option of options) option.onclick = () => choose(Number(option.dataset.index), 0);
  root.onkeydown = (event) => {
    if (!options.length) return;
    const at = options.findIndex((option) => Number(option.dataset.index) === root.chosen);
    const steps = { ArrowLeft: at - 1, ArrowUp: at - 1, ArrowRight: at + 1, ArrowDown: at + 1, Home: 0 };
    const next = event.key === "End" ? options.length - 1 : steps[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const option = options[Math.min(Math.max(next, 0), options.length - 1)];
    option.focus();
    choose(Number(option.dataset.index), SETTLE_MS);
  };
}
