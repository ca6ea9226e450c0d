// Two curves over the rank of all V tokens, on a logarithmic axis: the cumulative probability with the top-p line, and
// the probability itself. Both are drawn through a few hundred ranks; the sums behind them run over every token.

import { weigh } from "./reshape.js";
import { element, fill, fmtCount, fmtExact, setText, svgElement } from "./format.js";

const MARGIN = { left: 46, right: 12, top: 10, bottom: 34 };
const HEIGHT = 220;
const LEAST = 1e-12; // the log axis of probabilities goes down to here at most

export class Curves {
  constructor(root, look) {
    this.look = look;
    this.root = root;
    this.cumulative = new Chart(look);
    this.falling = new Chart(look);
    root.replaceChildren(this.cumulative.root, this.falling.root);
    new ResizeObserver(() => this.result && this.resize()).observe(root);
  }

  build(ranked, texts, labels) {
    this.ranked = ranked;
    this.labels = labels;
    this.points = sampledRanks(ranked.size);
    const start = sample(ranked.start, this.points);
    this.start = start;
    const floor = Math.max(start.probs.findLast((p) => p > 0) ?? LEAST, LEAST);
    this.floor = 10 ** Math.floor(Math.log10(floor) - 0.5);
    const name = (rank) => texts.get(ranked.ids[rank]) ?? `#${ranked.ids[rank]}`;
    this.cumulative.build({ title: labels.cumulative, x: labels.rank, size: ranked.size, name, labels, y: (p) => p, ticks: [0, 0.25, 0.5, 0.75, 1] });
    const decades = Math.round(-Math.log10(this.floor));
    const log = (p) => (p <= this.floor ? 0 : 1 - Math.log10(p) / Math.log10(this.floor));
    const step = Math.ceil(decades / 5);
    const ticks = Array.from({ length: Math.floor(decades / step) + 1 }, (_, i) => 10 ** (-i * step));
    this.falling.build({ title: labels.falling, x: labels.rank, size: ranked.size, name, labels, y: log, ticks, logarithmic: true });
  }

  resize() {
    for (const chart of [this.cumulative, this.falling]) chart.layout();
    this.draw();
  }

  show(result) {
    this.result = result;
    if (this.cumulative.measure() | this.falling.measure()) this.resize();
    else this.draw();
  }

  draw() {
    const { steps, final } = this.result;
    const nucleus = steps.find((step) => step.name === "top_p");
    const now = sample(final, this.points);
    const summed = nucleus ? sample(nucleus.before, this.points) : now;
    this.cumulative.draw([
      ["was", this.points, this.start.sums],
      ["now", this.points, summed.sums],
    ]);
    this.cumulative.line(nucleus ? nucleus.value : null, nucleus ? nucleus.kept : 0);
    this.falling.draw([
      ["was", this.points, this.start.probs],
      ["now", this.points, now.probs],
    ]);
    this.cumulative.at = (rank) => this.exact(rank, nucleus ? nucleus.before : final);
    this.falling.at = (rank) => this.exact(rank, final);
    this.cumulative.refresh();
    this.falling.refresh();
  }

  // The token at this place in the order of c, its probability, and the sum up to it.
  exact(rank, c) {
    if (rank >= c.ranks.length) return null;
    const weights = weigh(c);
    let sum = 0;
    for (let i = 0; i <= rank; i++) sum += weights[i];
    return { token: c.ranks[rank], p: weights[rank] / c.total, sum: sum / c.total };
  }
}

// 0, 1, 2 ... then ever further apart, up to the last rank.
function sampledRanks(size) {
  const ranks = [];
  for (let rank = 0; rank < size - 1; rank = Math.max(rank + 1, Math.round(rank * 1.045))) ranks.push(rank);
  return [...ranks, size - 1];
}

function sample(c, points) {
  const weights = weigh(c);
  const probs = [];
  const sums = [];
  let sum = 0;
  let next = 0;
  for (const rank of points) {
    if (rank >= weights.length) break;
    while (next <= rank) sum += weights[next++];
    probs.push(weights[rank] / c.total);
    sums.push(sum / c.total);
  }
  return { probs, sums };
}

class Chart {
  constructor(look) {
    this.svg = svgElement("svg", { class: "chart", tabindex: 0, role: "slider" });
    this.caption = element("figcaption", { className: "caption" });
    this.reading = element("p", { className: "reading" });
    this.root = element("figure", { className: "curve" }, this.caption, this.svg, this.reading);
    this.axes = svgElement("g");
    this.paths = { was: svgElement("path", { class: "was" }), now: svgElement("path", { class: "now" }) };
    this.threshold = svgElement("path", { class: "threshold" });
    this.cross = svgElement("path", { class: "cross" });
    this.dot = svgElement("circle", { class: "dot", r: 4 });
    this.svg.append(this.axes, this.paths.was, this.paths.now, this.threshold, this.cross, this.dot);
    this.svg.onpointermove = (event) => this.hover(this.rankAt(event.offsetX));
    this.svg.onpointerdown = this.svg.onpointermove;
    this.svg.onpointerleave = () => {
      if (this.svg.getRootNode().activeElement !== this.svg) this.hover(null);
    };
    this.svg.onblur = () => this.hover(null);
    this.svg.onkeydown = (event) => {
      const now = this.rank ?? -1;
      const far = Math.max(Math.round(now * 0.1), 1);
      const moves = { ArrowRight: now + 1, ArrowLeft: now - 1, ArrowUp: now + 1, ArrowDown: now - 1, PageUp: now + far, PageDown: now - far, Home: 0, End: this.size - 1 };
      if (!(event.key in moves)) return;
      event.preventDefault();
      this.hover(Math.min(Math.max(moves[event.key], 0), this.size - 1));
    };
    this.look = look;
    this.rank = null;
  }

  build(options) {
    Object.assign(this, options);
    setText(this.caption, options.title);
    this.svg.setAttribute("aria-label", options.title);
    this.svg.setAttribute("aria-valuemin", 1);
    this.svg.setAttribute("aria-valuemax", this.size);
    this.rank = null;
    this.width = 0;
  }

  // Whether the room it has changed since it was laid out.
  measure() {
    return this.svg.clientWidth !== this.width;
  }

  layout() {
    this.width = this.svg.clientWidth;
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${HEIGHT}`);
    const right = this.width - MARGIN.right;
    const bottom = HEIGHT - MARGIN.bottom;
    const parts = [];
    for (const tick of this.ticks) {
      const y = this.toY(tick);
      parts.push(svgElement("path", { class: "grid", d: `M${MARGIN.left} ${y}H${right}` }));
      parts.push(label(tickText(tick, this.logarithmic), MARGIN.left - 6, y + 4, "end"));
    }
    let lastX = -99;
    for (let decade = 1; decade <= this.size; decade *= 10) {
      const x = this.toX(decade - 1);
      if (x - lastX > 34) parts.push(label(fmtCount(decade), x, bottom + 16, "middle"));
      lastX = x;
    }
    parts.push(label(this.x, right, bottom + 31, "end"));
    parts.push(svgElement("path", { class: "axis", d: `M${MARGIN.left} ${bottom}H${right}` }));
    this.axes.replaceChildren(...parts);
  }

  toX(rank) {
    const span = Math.max(Math.log(this.size), 1e-9);
    return MARGIN.left + (Math.log(rank + 1) / span) * (this.width - MARGIN.left - MARGIN.right);
  }

  toY(value) {
    return HEIGHT - MARGIN.bottom - this.y(value) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  }

  rankAt(x) {
    const share = (x - MARGIN.left) / Math.max(this.width - MARGIN.left - MARGIN.right, 1);
    return Math.min(Math.max(Math.round(Math.exp(share * Math.log(this.size))) - 1, 0), this.size - 1);
  }

  draw(series) {
    for (const [name, ranks, values] of series) {
      let d = "";
      for (let i = 0; i < values.length; i++) d += `${i ? "L" : "M"}${this.toX(ranks[i]).toFixed(1)} ${this.toY(values[i]).toFixed(1)}`;
      this.paths[name].setAttribute("d", d && `${d}h0`); // one point alone is a dot
    }
  }

  // The top-p line, and how many tokens it takes to reach it.
  line(value, kept) {
    this.threshold.style.display = value === null ? "none" : "";
    if (value === null) return;
    const [x, y] = [this.toX(kept - 1).toFixed(1), this.toY(value).toFixed(1)];
    this.threshold.setAttribute("d", `M${MARGIN.left} ${y}H${this.width - MARGIN.right}M${x} ${y}V${HEIGHT - MARGIN.bottom}`);
  }

  hover(rank) {
    this.rank = rank;
    this.refresh();
    this.look(rank === null ? null : this.at?.(rank)?.token ?? null);
  }

  refresh() {
    const found = this.rank === null || !this.at ? null : this.at(this.rank);
    const hidden = this.rank === null ? "none" : "";
    this.cross.style.display = hidden;
    this.dot.style.display = found ? "" : "none";
    if (this.rank === null) return setText(this.reading, "\u00a0");
    const x = this.toX(this.rank).toFixed(1);
    this.cross.setAttribute("d", `M${x} ${MARGIN.top}V${HEIGHT - MARGIN.bottom}`);
    if (found) {
      this.dot.setAttribute("cx", x);
      this.dot.setAttribute("cy", this.toY(this.logarithmic ? found.p : found.sum));
    }
    const text = found
      ? fill(this.labels.reading, { rank: fmtCount(this.rank + 1), token: this.name(found.token), p: fmtExact(found.p), sum: fmtExact(found.sum) })
      : fill(this.labels.reading_none, { rank: fmtCount(this.rank + 1) });
    setText(this.reading, text);
    this.svg.setAttribute("aria-valuenow", this.rank + 1);
    this.svg.setAttribute("aria-valuetext", text);
  }
}

function label(text, x, y, anchor) {
  const made = svgElement("text", { x, y, "text-anchor": anchor });
  made.textContent = text;
  return made;
}

function tickText(p, logarithmic) {
  if (!logarithmic) return `${100 * p} %`;
  const exponent = Math.round(Math.log10(p)) + 2; // in percent
  return exponent >= -1 ? `${10 ** exponent} %` : `1e${exponent} %`;
}
