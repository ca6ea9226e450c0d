// The lines that join the parts: each token's row through all columns, the followed one to the bars, the draw back home.

import { svgElement } from "../sampling_lab/format.js";

export class Flow {
  constructor(svg) {
    this.svg = svg;
    svg.setAttribute("aria-hidden", "true");
  }

  // board: what the lines are drawn on; parts: its places, by name.
  draw(board, { tokens, embedding, position, picture, hidden, bars, drawn }, state) {
    const frame = board.getBoundingClientRect();
    const box = (node) => {
      const { left, right, top, bottom } = node.getBoundingClientRect();
      return { left: left - frame.left, right: right - frame.left, middle: (top + bottom) / 2 - frame.top, top: top - frame.top, bottom: bottom - frame.top };
    };
    this.svg.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
    const made = [];
    const line = (from, to, className, hue) => {
      const [a, b] = [from, to];
      const bend = (a.x + b.x) / 2;
      const path = svgElement("path", { class: className, d: `M${a.x} ${a.y}C${bend} ${a.y} ${bend} ${b.y} ${b.x} ${b.y}` });
      if (hue) path.style.stroke = hue;
      made.push(path);
      return path;
    };
    const across = box(picture);
    tokens.rows.forEach((row, index) => {
      const i = index - tokens.first;
      const at = box(row);
      const hue = i >= 0 ? state.text.rows[i]?.hue : null;
      const name = i === state.followedRow ? "join followed" : "join";
      const stops = [embedding.children[index], position.children[index]];
      let x = at.right;
      for (const stop of stops) {
        const inner = stop?.firstElementChild;
        if (!inner) continue;
        const there = box(inner);
        line({ x: x + 1, y: at.middle }, { x: there.left - 2, y: at.middle }, name, hue);
        x = there.right;
      }
      line({ x: x + 1, y: at.middle }, { x: across.left, y: at.middle }, name, hue);
    });
    const chosen = tokens.chosenRow();
    if (chosen) {
      const y = box(chosen).middle;
      const h = box(hidden);
      const hue = state.followed.hue;
      line({ x: across.right, y }, { x: h.left - 2, y: Math.min(Math.max(y, h.top + 6), h.bottom - 6) }, "join followed", hue);
      for (const row of bars) {
        const at = box(row);
        const path = line({ x: h.right + 2, y: h.top + (h.bottom - h.top) * 0.5 }, { x: at.left, y: at.middle }, "fan");
        path.style.opacity = (0.12 + 0.7 * Math.sqrt(row.p1)).toFixed(3);
      }
    }
    const from = box(drawn);
    const slot = box(tokens.slot);
    const floor = frame.height - 3;
    const [x, y, home] = [from.left - 7, from.middle, slot.left - 7];
    const down = `M${from.left} ${y}Q${x} ${y} ${x} ${y + 8}V${floor - 8}Q${x} ${floor} ${x - 8} ${floor}`;
    const up = `H${home + 8}Q${home} ${floor} ${home} ${floor - 8}V${slot.middle + 8}Q${home} ${slot.middle} ${slot.left} ${slot.middle}`;
    const loop = svgElement("path", { class: "loop", d: down + up });
    if (state.isLast) made.push(loop);
    this.svg.replaceChildren(...made);
  }
}
