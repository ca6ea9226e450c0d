// One token's way through the stages: its probability after each, up to the one that removed it; and its logit bias.

import { probability } from "./candidates.js";
import { element, fill, fmtCount, fmtExact, fmtLogit, setText } from "./format.js";

export class Way {
  // bias(id, amount): the reader set a bias; settled(): and let it be.
  constructor(root, { bias, settled }) {
    this.root = root;
    this.bias = bias;
    this.settled = settled;
  }

  build(ranked, texts, labels) {
    this.ranked = ranked;
    this.texts = texts;
    this.labels = labels;
    this.rank = null;
  }

  show(result, rank) {
    if (this.rank !== rank) {
      this.rank = rank;
      this.boxes = element("div", { className: "stops" });
      this.root.replaceChildren(this.who(rank, result.settings.logit_bias), this.boxes);
    }
    const stops = this.stops(result, rank);
    while (this.boxes.children.length > stops.length) this.boxes.lastChild.remove();
    stops.forEach(([name, p, isIn], index) => {
      if (!this.boxes.children[index]) {
        this.boxes.append(element("span", { className: "stop" }, element("small"), element("b")));
      }
      const box = this.boxes.children[index];
      box.classList.toggle("out", !isIn);
      setText(box.children[0], name);
      setText(box.children[1], p);
    });
  }

  stops({ start, steps, fate }, rank) {
    const removedAt = fate[rank] === -1 ? Infinity : fate[rank]; // -2, impossible: before the first
    const stops = [["T = 1", fmtExact(probability(start, rank, removedAt !== -2)), removedAt !== -2]];
    for (const [index, step] of steps.entries()) {
      if (index > removedAt) break;
      const isIn = index < removedAt;
      const p = isIn ? fmtExact(probability(step.after, rank)) : this.labels.removed;
      stops.push([this.labels.titles[step.name], p, isIn]);
    }
    return stops;
  }

  who(rank, bias) {
    const id = this.ranked.ids[rank];
    const token = element("bdi", { className: "token", textContent: this.texts.get(id) ?? `#${id}` });
    const values = { id, rank: fmtCount(rank + 1), logit: fmtLogit(this.ranked.logits[rank]) };
    const facts = element("span", { className: "facts", textContent: fill(this.labels.facts, values) });
    const field = element("input", { type: "number", step: "any", className: "field", placeholder: "0" });
    field.value = bias[id] ?? "";
    field.setAttribute("aria-label", `${this.labels.bias}: ${token.textContent}`);
    field.oninput = () => !field.validity.badInput && this.bias(id, Number(field.value));
    field.onchange = () => this.settled();
    const label = element("label", { className: "bias" }, element("span", { textContent: this.labels.bias }), field);
    return element("p", { className: "who" }, token, facts, label);
  }
}
