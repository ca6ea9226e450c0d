// One chart: axes, curves, a threshold, and a crosshair that the pointer or the arrow keys move along its positions.

import { element, setText, svgElement } from "./format.js";

const MARGIN = { left: 46, right: 12, top: 10, bottom: 34 };
const HEIGHT = 220;

export class Chart {
  // look(position or null): the crosshair moved.
  constructor(look) {
    this.look = look;
    this.svg = svgElement("svg", { class: "chart", tabindex: 0, role: "slider" });
    this.caption = element("figcaption", { className: "caption" });
    this.reading = element("p", { className: "reading" });
    this.legend = element("p", { className: "legend" });
    this.root = element("figure", { className: "curve" }, this.caption, this.legend, this.svg, this.reading);
    this.axes = svgElement("g");
    this.threshold = svgElement("path", { class: "threshold" });
    this.cross = svgElement("path", { class: "cross" });
    this.dot = svgElement("circle", { class: "dot", r: 4 });
    this.svg.append(this.axes, this.threshold, this.cross, this.dot);
    this.paths = {};
    this.position = null;
    this.svg.onpointermove = (event) => this.hover(this.positionAt(event.offsetX));
    this.svg.onpointerdown = this.svg.onpointermove;
    this.svg.onpointerleave = ({ pointerType }) => {
      if (this.svg.getRootNode().activeElement === this.svg) return;
      if (pointerType === "touch") this.look(null); // what the finger found can be read once it is lifted
      else this.hover(null);
    };
    this.svg.onblur = () => this.hover(null);
    this.svg.onkeydown = (event) => this.pressed(event);
  }

  pressed(event) {
    const now = this.position ?? -1;
    const far = Math.max(Math.round(now * 0.1), 1);
    const moves = {
      ArrowRight: now + 1,
      ArrowUp: now + 1,
      PageUp: now + far,
      Home: 0,
      ArrowLeft: now - 1,
      ArrowDown: now - 1,
      PageDown: now - far,
      End: this.size - 1,
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    this.hover(Math.min(Math.max(moves[event.key], 0), this.size - 1));
  }

  // options: {title, x, xTicks: [[position, text]], yTicks: [[value, text]], size, share, position, y, read}
  // share: position -> 0..1 across; positionOf: the inverse; y: value -> 0..1 up; read: position -> {text, value}.
  build(options) {
    Object.assign(this, options);
    setText(this.caption, options.title);
    this.svg.setAttribute("aria-label", options.title);
    this.svg.setAttribute("aria-valuemin", 1);
    this.svg.setAttribute("aria-valuemax", this.size);
    this.svg.setAttribute("aria-valuenow", 1); // nothing is looked at yet: the first arrow key leads to a position
    this.position = null;
    this.width = 0;
    this.refresh();
  }

  // Lay the axes out anew when the room has changed. Asks the page for it, which costs a layout: not at each frame.
  fit() {
    const width = this.svg.clientWidth;
    if (width === this.width) return;
    this.width = width;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    const right = width - MARGIN.right;
    const bottom = HEIGHT - MARGIN.bottom;
    const across = (name, y) => svgElement("path", { class: name, d: `M${MARGIN.left} ${y}H${right}` });
    const parts = [across("axis", bottom), label(this.x, right, bottom + 31, "end")];
    for (const [value, text] of this.yTicks) {
      const y = this.toY(value);
      parts.push(across("grid", y), label(text, MARGIN.left - 6, y + 4, "end"));
    }
    let free = 0;
    for (const [position, text] of this.xTicks) {
      const x = this.toX(position);
      if (x < free) continue;
      parts.push(label(text, x, bottom + 16, "middle"));
      free = x + 14 + 7 * text.length;
    }
    this.axes.replaceChildren(...parts);
  }

  toX(position) {
    return MARGIN.left + this.share(position) * (this.width - MARGIN.left - MARGIN.right);
  }

  toY(value) {
    return HEIGHT - MARGIN.bottom - this.y(value) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  }

  positionAt(x) {
    const share = (x - MARGIN.left) / Math.max(this.width - MARGIN.left - MARGIN.right, 1);
    return Math.min(Math.max(Math.round(this.positionOf(share)), 0), this.size - 1);
  }

  // series: name -> [positions, values]; the name is the curve's class.
  draw(series) {
    for (const [name, path] of Object.entries(this.paths)) if (!(name in series)) path.removeAttribute("d");
    for (const [name, [positions, values]] of Object.entries(series)) {
      if (!this.paths[name]) this.threshold.before((this.paths[name] = svgElement("path", { class: name })));
      let d = "";
      for (let i = 0; i < values.length; i++) {
        d += `${i ? "L" : "M"}${this.toX(positions[i]).toFixed(1)} ${this.toY(values[i]).toFixed(1)}`;
      }
      this.paths[name].setAttribute("d", d && `${d}h0`); // one point alone is a dot
    }
    this.refresh();
  }

  // A line across at a value (null: none), and one down from it at a position.
  mark(value, position) {
    this.threshold.style.display = position === null ? "none" : "";
    if (position === null) return;
    const x = this.toX(position).toFixed(1);
    const y = value === null ? MARGIN.top : this.toY(value).toFixed(1);
    const across = value === null ? "" : `M${MARGIN.left} ${y}H${this.width - MARGIN.right}`;
    this.threshold.setAttribute("d", `${across}M${x} ${y}V${HEIGHT - MARGIN.bottom}`);
  }

  hover(position) {
    this.position = position;
    this.refresh();
    this.look(position);
  }

  refresh() {
    const { position } = this;
    const found = position === null ? null : this.read(position);
    this.cross.style.display = position === null ? "none" : "";
    this.dot.style.display = found?.value === undefined ? "none" : "";
    if (position === null) return setText(this.reading, "\u00a0");
    const x = this.toX(position).toFixed(1);
    this.cross.setAttribute("d", `M${x} ${MARGIN.top}V${HEIGHT - MARGIN.bottom}`);
    if (found.value !== undefined) {
      this.dot.setAttribute("cx", x);
      this.dot.setAttribute("cy", this.toY(found.value));
    }
    setText(this.reading, found.text);
    this.svg.setAttribute("aria-valuenow", position + 1);
    this.svg.setAttribute("aria-valuetext", found.text);
  }
}

function label(text, x, y, anchor) {
  const made = svgElement("text", { x, y, "text-anchor": anchor });
  made.textContent = text;
  return made;
}
