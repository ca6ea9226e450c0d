// How a token is drawn: the line from 0 to 1, shared out among the tokens left, by id; the random number falls on one.

import { probsById } from "../sampling_lab/reshape.js";
import { element, fill, setText } from "../sampling_lab/format.js";
import { fmtValue, quoted } from "./numbers.js";

const SHADES = [0.3, 0.55, 0.8]; // of neighbours, so that they are told apart
const CELLS = 600;

export class Line {
  constructor(root, said) {
    this.root = root;
    this.said = said;
    this.canvas = element("canvas", { width: CELLS, height: 1 });
    this.needle = element("i", { className: "needle" });
    this.share = element("i", { className: "share" });
    root.append(this.canvas, this.share, this.needle);
    root.setAttribute("aria-hidden", "true"); // the sentence below says it
  }

  // u: the number of the seed's stream that the next token is drawn with; null where none will be.
  // candidate: the id that the reader follows, whose share is marked; null for none.
  // Returns the id that the number falls on; null where none will be drawn.
  show(result, u, candidate, texts, labels) {
    this.root.hidden = u === null;
    if (u === null) {
      setText(this.said, "");
      return null;
    }
    const probs = probsById(result);
    let total = 0;
    for (const p of probs) total += p;
    const context = this.canvas.getContext("2d");
    const image = context.createImageData(CELLS, 1);
    let sum = 0;
    let cell = 0;
    let turn = 0;
    let hit = -1;
    let last = -1;
    for (let id = 0; id < probs.length; id++) {
      if (probs[id] === 0) continue;
      if (id === candidate) {
        this.share.style.left = `min(${100 * sum}%, 100% - 3px)`;
        this.share.style.width = `${(100 * probs[id]) / total}%`;
      }
      sum += probs[id] / total;
      last = id;
      if (hit < 0 && sum > u) hit = id;
      const end = Math.min(Math.round(sum * CELLS), CELLS);
      if (end <= cell) continue;
      const colour = hit === id ? [213, 94, 0, 235] : [36, 132, 214, Math.round(255 * SHADES[turn++ % SHADES.length])];
      for (; cell < end; cell++) image.data.set(colour, 4 * cell);
    }
    this.share.hidden = candidate === null || !probs[candidate];
    context.putImageData(image, 0, 0);
    this.needle.style.left = `${100 * u}%`;
    const token = hit < 0 ? last : hit;
    setText(this.said, fill(labels.falls, { u: fmtValue(u), token: texts.has(token) ? quoted(texts.get(token)) : `#${token}` }));
    return token;
  }
}
