// The diagram as nested boxes. Names and shapes are data: they reach the page through textContent only.

function make(tag, className, ...children) {
  const element = document.createElement(tag);
  element.className = className;
  element.append(...children);
  return element;
}

function line(className, text) {
  const element = make("span", className);
  element.textContent = text;
  return element;
}

export default function ({ data, parentElement, setTriggerValue }) {
  const map = parentElement.querySelector(".map");
  map.setAttribute("aria-label", data.label);
  const drawn = JSON.stringify(data);
  if (map.drawn === drawn) return;
  map.drawn = drawn;

  const active = parentElement.activeElement ?? document.activeElement;
  const focused = active?.dataset?.choice;

  const node = (part, className = "") => {
    const element = make(part.choice ? "button" : "span", `node ${className}`, line("name", part.name));
    if (part.shape) element.append(line("shape", part.shape));
    if (part.note) element.append(line("note", part.note));
    if (part.choice) {
      element.type = "button";
      element.dataset.choice = JSON.stringify(part.choice);
      element.setAttribute("aria-pressed", String(part.selected));
      element.onclick = () => setTriggerValue("choice", part.choice);
    }
    return element;
  };
  const row = (className, parts, partClass) => make("div", className, ...parts.map((part) => node(part, partClass)));

  const { before, blocks, after, block } = data;
  const pipeline = make(
    "div",
    "pipeline",
    ...before.map((part) => node(part)),
    row("blocks", blocks, "small"),
    ...after.map((part) => node(part))
  );
  const attention = make(
    "div",
    "branch",
    node(block.attention[0]),
    make("div", "together", node(block.attention[1]), row("heads", block.heads, "small")),
    ...block.attention.slice(2).map((part) => node(part))
  );
  const mlp = make("div", "branch", ...block.mlp.map((part) => node(part)));
  const [pre, mid, post] = block.states.map((part) => node(part, "state"));
  const opened = make(
    "div",
    "opened",
    line("title", block.title),
    make("div", "stream", pre, attention, line("plus", "+"), mid, mlp, line("plus", "+"), post)
  );
  map.replaceChildren(pipeline, opened);
  if (focused) [...map.querySelectorAll("button")].find((button) => button.dataset.choice === focused)?.focus();
}
