// Token text is data: it reaches the page through textContent only.

const SVG = "http://www.w3.org/2000/svg";
const LEAST = 0.005; // a thinner arc is not seen
const MOST = 40; // arcs of one query

function row(weights, query) {
  const start = (query * (query + 1)) / 2;
  return weights.subarray(start, start + query + 1);
}

function percent(weight) {
  return `${(100 * weight).toFixed(2)} %`;
}

function build(text, data) {
  text.replaceChildren(
    ...data.tokens.map((token, position) => {
      const element = document.createElement("button");
      element.type = "button";
      element.className = "token";
      element.style.setProperty("--hue", data.colours[position]);
      const name = document.createElement("bdi");
      name.textContent = token;
      const weight = document.createElement("span");
      weight.className = "weight";
      element.append(name, weight);
      return element;
    })
  );
}

function path(from, to, frame) {
  const place = (element) => {
    const box = element.getBoundingClientRect();
    return { x: box.left + box.width / 2 - frame.left, top: box.top - frame.top, bottom: box.bottom - frame.top };
  };
  const a = place(from);
  const b = place(to);
  if (from === to) return `M ${a.x - 7} ${a.top} C ${a.x - 12} ${a.top - 18}, ${a.x + 12} ${a.top - 18}, ${a.x + 7} ${a.top}`;
  if (Math.abs(a.top - b.top) < 4) {
    const height = Math.min(14 + 0.12 * Math.abs(a.x - b.x), 44);
    return `M ${b.x} ${b.top} C ${b.x} ${b.top - height}, ${a.x} ${a.top - height}, ${a.x} ${a.top}`;
  }
  // Another line: from below the key into the query from above.
  const middle = Math.max(24, 0.35 * (a.top - b.bottom));
  return `M ${b.x} ${b.bottom} C ${b.x} ${b.bottom + middle}, ${a.x} ${a.top - middle}, ${a.x} ${a.top}`;
}

function draw(parentElement, view, query) {
  const frame = parentElement.querySelector(".frame");
  const svg = parentElement.querySelector("svg");
  const tokens = [...parentElement.querySelectorAll(".token")];
  if (!tokens[query]) return;
  const weights = row(view.weights, query);
  tokens.forEach((token, position) => {
    const weight = weights[position] ?? 0;
    token.classList.toggle("future", position > query);
    token.classList.toggle("query", position === query);
    token.style.setProperty("--weight", weight.toFixed(4));
    token.querySelector(".weight").textContent = weight >= 0.01 ? `${Math.round(100 * weight)} %` : "\u00a0";
    token.title = position > query ? `${position}` : `${query} → ${position}: ${percent(weight)}`;
    token.setAttribute("aria-label", `${position}: ${view.tokens[position]}, ${percent(weight)}`);
    token.setAttribute("aria-pressed", String(position === view.query));
    token.tabIndex = position === view.query ? 0 : -1;
  });
  const box = frame.getBoundingClientRect();
  svg.setAttribute("width", frame.clientWidth);
  svg.setAttribute("height", 0); // so that a text that became shorter is measured alone
  svg.setAttribute("height", frame.scrollHeight);
  const origin = { left: box.left, top: box.top - frame.scrollTop };
  const heaviest = [...weights.keys()].filter((position) => weights[position] >= LEAST);
  heaviest.sort((one, other) => weights[other] - weights[one]);
  svg.replaceChildren(
    ...heaviest.slice(0, MOST).map((position) => {
      const arc = document.createElementNS(SVG, "path");
      arc.setAttribute("d", path(tokens[query], tokens[position], origin));
      arc.style.stroke = view.colours[position];
      arc.style.strokeWidth = `${0.75 + 9 * weights[position]}px`;
      arc.style.opacity = 0.25 + 0.65 * weights[position];
      return arc;
    })
  );
}

export default function ({ data, parentElement, setTriggerValue }) {
  const frame = parentElement.querySelector(".frame");
  const text = parentElement.querySelector(".text");
  const words = JSON.stringify(data.tokens);
  if (frame.words !== words) {
    build(text, data);
    frame.words = words;
  }
  const bytes = Uint8Array.from(atob(data.weights), (letter) => letter.charCodeAt(0));
  const view = { ...data, weights: new Float32Array(bytes.buffer) };
  text.setAttribute("role", "group");
  text.setAttribute("aria-label", data.label);
  const show = (query) => draw(parentElement, view, query);
  const tokens = [...text.children];
  tokens.forEach((token, position) => {
    token.onclick = () => setTriggerValue("position", position);
    token.onpointerenter = () => show(position);
    token.onfocus = () => show(position);
    token.onblur = () => show(view.query);
  });
  text.onpointerleave = () => show(view.query);
  text.onkeydown = (event) => {
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    const place = tokens.indexOf(event.target);
    if (step === undefined || place < 0) return;
    event.preventDefault();
    tokens[place + step]?.focus();
  };
  frame.observer?.disconnect();
  frame.observer = new ResizeObserver(() => show(view.query));
  frame.observer.observe(frame);
  show(view.query);
  if (frame.query !== data.query) {
    const query = tokens[data.query]; // of a long text, the lines around the query are in view
    frame.scrollTop = query.getBoundingClientRect().bottom - text.getBoundingClientRect().top - frame.clientHeight / 2;
    frame.query = data.query;
  }
  return () => frame.observer?.disconnect();
}
