// What the position encoding does, a row a token: a strip that is added; the hands of RoPE's clocks; a bias on scores.

import { element, fill, fmtLogit, setText, svgElement } from "../sampling_lab/format.js";
import { quoted } from "./numbers.js";
import { Rows } from "./vectors.js";

const CLOCKS = 5;
const SIZE = 18; // of a clock, in its own units

export class Position {
  constructor(root, { say }) {
    Object.assign(this, { root, say });
    this.strips = new Rows(root, { say });
  }

  show(state) {
    const { way, model, labels, text, chosen } = state;
    const blanks = text.earlier ? 1 : 0;
    this.root.dataset.kind = model.encoding;
    if (way.added) {
      this.strips.show(way.added, blanks, state.followedRow, (i, dimension) => {
        const { text: token, position } = text.rows[i];
        const value = fmtLogit(way.added.at(i, dimension));
        return fill(labels.added, { token: quoted(token), position, i: dimension, value });
      });
      return;
    }
    const isLocal = way.rotation_local && model.local.includes(chosen.layer);
    const isRotated = !model.unrotated.includes(chosen.layer);
    const rotation = isRotated ? (isLocal ? way.rotation_local : way.rotation) : null;
    const rows = text.rows.map((token, i) => {
      const made = element("div", { className: "row" });
      made.classList.toggle("chosen", token.position === chosen.position);
      if (rotation) made.append(this.clocks(rotation, i, token, labels));
      else if (way.bias) made.append(this.bias(state, i, token));
      return made;
    });
    this.root.replaceChildren(...Array.from({ length: blanks }, () => element("div", { className: "row blank" })), ...rows);
  }

  clocks(rotation, i, token, labels) {
    const pairs = rotation.shape[1];
    const n = Math.min(CLOCKS, pairs);
    const svg = svgElement("svg", { class: "clocks", viewBox: `0 0 ${n * (SIZE + 4)} ${SIZE}` });
    for (let place = 0; place < n; place++) {
      const pair = n === 1 ? 0 : Math.round((place * (pairs - 1)) / (n - 1) / 1.6); // the slowest ones stand still
      const [cos, sin] = [rotation.at(i, pair, 0), rotation.at(i, pair, 1)];
      const [x, y, r] = [place * (SIZE + 4) + SIZE / 2 + 2, SIZE / 2, SIZE / 2 - 1];
      const clock = svgElement("g", { class: "clock" });
      clock.append(
        svgElement("circle", { cx: x, cy: y, r }),
        svgElement("path", { d: `M${x} ${y}l${(r * cos).toFixed(2)} ${(-r * sin).toFixed(2)}` })
      );
      clock.style.setProperty("--hue", token.hue);
      clock.onpointerenter = () => this.say(fill(labels.pair, { position: token.position, i: pair, angle: degrees(cos, sin) }));
      clock.onpointerleave = () => this.say(null);
      svg.append(clock);
    }
    return svg;
  }

  // The bias on the followed token's score for this one, in the chosen head or in head 0.
  bias({ way, chosen, labels, followed, biasLimit }, i, token) {
    const head = Math.max(chosen.head, 0);
    const value = way.bias.at(head, i);
    const bar = element("i", { className: value < 0 ? "bar below" : "bar" });
    bar.style.setProperty("--share", Math.abs(value) / biasLimit);
    const said = fill(labels.bias, {
      head: fill(labels.head, { head }),
      value: fmtLogit(value),
      from: quoted(followed.text),
      to: quoted(token.text),
    });
    const hidden = token.position > chosen.position;
    const made = element("div", { className: "bias" }, bar, element("span", { textContent: hidden ? "" : fmtLogit(value) }));
    made.classList.toggle("hidden", hidden);
    made.onpointerenter = () => hidden || this.say(said);
    made.onpointerleave = () => this.say(null);
    return made;
  }

  note(node, { model, labels }) {
    setText(node, labels.encodings[model.encoding]);
  }
}

export const degrees = (cos, sin) => Math.round((((Math.atan2(sin, cos) * 180) / Math.PI) % 360) + 360) % 360;
