// Numbers as the rest of the pages write them (pages/figures/theme.py), and helpers for building elements.

const MINUS = "\u2212";

// 0.69714 -> "69.71 %"; what would round to nothing keeps its order of magnitude.
export function fmtProbability(p) {
  if (p === 0) return "0 %";
  if (p >= 0.00005) return `${(100 * p).toFixed(2)} %`;
  return `${(100 * p).toExponential(1).replace(/-(\d)$/, "-0$1")} %`;
}

// With all the digits a reader can use.
export const fmtExact = (p) => (p === 0 ? "0 %" : `${Number((100 * p).toPrecision(8))} %`);

export function fmtLogit(z) {
  if (z === -Infinity) return `${MINUS}\u221e`;
  return signed(Math.abs(z) < 1e6 ? z.toFixed(3) : z.toExponential(3));
}

const COUNT = new Intl.NumberFormat("en-US");
export const fmtCount = (n) => COUNT.format(n);

export const signed = (text) => String(text).replace("-", MINUS);

// fill("{a} of {b}", {a: 1, b: 2}) -> "1 of 2"
export const fill = (template, values) => template.replace(/\{(\w+)\}/g, (_, name) => values[name]);

// element("p", {className: "x", textContent: text}, ...children); text goes in as text, never as markup.
export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

export function svgElement(tag, attributes = {}) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

// A slider. moved(place): it moves; held(isHeld): a key goes down or up; settled(): it was let go; undo(): what it would
// take to put things back as they are. A finger that scrolls the page may begin on a slider, which jumps there before
// the browser sees where the finger goes, and then cancels the touch.
export function rangeInput(properties, { moved, held, settled, undo }) {
  const made = element("input", { type: "range", ...properties });
  let putBack;
  made.onpointerdown = () => (putBack = undo());
  made.onpointercancel = () => putBack?.();
  made.oninput = () => moved(Number(made.value));
  made.onchange = settled;
  made.onkeydown = () => held(true);
  made.onkeyup = made.onblur = () => held(false);
  return made;
}

// Write only what changed: an untouched node costs no layout.
export function setText(node, text) {
  if (node.shown !== text) node.textContent = node.shown = text;
}
