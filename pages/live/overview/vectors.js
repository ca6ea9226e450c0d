// Vectors as strips of cells, one cell a dimension: the rows of the table, what is added to them, the hidden state.

import { element, fill, fmtLogit, setText } from "../sampling_lab/format.js";
import { cellAt, fmtValue, limitOf, paintCells, quoted, row } from "./numbers.js";

export class Rows {
  // say(text or null): what the pointer rests on.
  constructor(root, { say }) {
    Object.assign(this, { root, say });
  }

  // numbers: [n, d] or null; read(i, dimension): its sentence; chosen: which row is followed.
  show(numbers, blanksBefore, chosen, read) {
    const n = numbers.shape[0];
    this.limit = limitOf(numbers.values);
    const made = Array.from({ length: n }, (_, i) => {
      const strip = element("canvas", { className: "strip" });
      paintCells(strip, row(numbers, i), this.limit);
      strip.onpointermove = (event) => this.say(read(i, cellAt(strip, event, numbers.shape[1])));
      strip.onpointerleave = () => this.say(null);
      const holder = element("div", { className: "row" }, strip);
      holder.classList.toggle("chosen", i === chosen);
      return holder;
    });
    const blanks = Array.from({ length: blanksBefore }, () => element("div", { className: "row blank" }));
    this.root.replaceChildren(...blanks, ...made);
  }
}

export class Hidden {
  constructor(canvas, { say }) {
    this.canvas = canvas;
    this.say = say;
  }

  // isLying: from left to right, where parts are stacked.
  show({ way, labels, followed }, isLying) {
    const { values } = way.hidden;
    paintCells(this.canvas, values, limitOf(values), !isLying);
    this.canvas.onpointermove = (event) => {
      const i = cellAt(this.canvas, event, values.length, !isLying);
      this.say(fill(labels.hidden, { token: quoted(followed.text), i, value: fmtLogit(values[i]) }));
    };
    this.canvas.onpointerleave = () => this.say(null);
  }
}

export function embeddingNote(node, rows, { model, labels }) {
  setText(node, fill(labels.embedding_note, { d: model.d, limit: fmtValue(rows.limit) }));
}
