// One token's way through the stages: its probability after each, up to the one that removed it; and its logit bias,
// a number, or -inf to ban it.

import { probability } from "./candidates.js";
import { element, fill, fmtCount, fmtExact, fmtLogit, setText, signed } from "./format.js";

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
    const amount = result.settings.logit_bias[this.ranked.ids[rank]];
    if (this.rank === rank) {
      this.showBias(amount);
    } else {
      this.rank = rank;
      this.boxes = element("div", { className: "stops" });
      this.root.replaceChildren(this.who(rank), this.boxes);
      this.showBias(amount);
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

  stops({ start, steps, fate, final, ways = [] }, rank) {
    const branch = ways.length > 1 ? steps.findIndex(({ chance }) => chance < 1) : Infinity;
    const removedAt = fate[rank] === -1 ? Infinity : fate[rank]; // -2, impossible: before the first
    const stops = [["T = 1", fmtExact(probability(start, rank, removedAt !== -2)), removedAt !== -2]];
    for (const [index, step] of steps.entries()) {
      if (index > removedAt) break;
      const isIn = index < removedAt;
      // What the server computed has no numbers between the first and the last, and a mixture none of one way.
      if ((step.isTold || index >= branch) && isIn) continue;
      const p = isIn ? fmtExact(probability(step.after, rank)) : this.labels.removed;
      stops.push([this.labels.titles[step.name], p, isIn]);
    }
    if ((steps[0]?.isTold || branch < Infinity) && removedAt === Infinity) {
      stops.push([this.labels.columns.now, fmtExact(probability(final, rank)), true]);
    }
    return stops;
  }

  who(rank) {
    const id = this.ranked.ids[rank];
    const token = element("bdi", { className: "token", textContent: this.texts.get(id) ?? `#${id}` });
    const values = { id, rank: fmtCount(rank + 1), logit: fmtLogit(this.ranked.logits[rank]) };
    const facts = element("span", { className: "facts", textContent: fill(this.labels.facts, values) });
    const field = element("input", { type: "text", className: "field", placeholder: "0" });
    field.setAttribute("aria-label", `${this.labels.bias}: ${token.textContent}`);
    field.title = this.labels.bias_help;
    field.oninput = () => {
      const amount = readAmount(field.value);
      field.setAttribute("aria-invalid", String(amount === null));
      field.setCustomValidity(amount === null ? this.labels.bias_help : "");
      if (amount === null) field.reportValidity();
      else this.bias(id, amount);
    };
    field.onchange = () => this.settled();
    const ban = element("button", { type: "button", className: "button", textContent: this.labels.ban });
    ban.title = this.labels.ban_help;
    ban.onclick = () => {
      this.bias(id, ban.getAttribute("aria-pressed") === "true" ? 0 : "-inf");
      this.settled();
    };
    this.showBias = (amount) => {
      ban.setAttribute("aria-pressed", String(amount === "-inf"));
      const isBeingTyped = field.getRootNode().activeElement === field && readAmount(field.value) === (amount ?? 0);
      if (!isBeingTyped) field.value = amount === undefined ? "" : signed(amount).replace("inf", "\u221e");
    };
    const label = element("label", { className: "bias" }, element("span", { textContent: this.labels.bias }), field);
    return element("p", { className: "who" }, token, facts, label, ban);
  }
}

// A number, "-inf" for a ban, or null for what is neither; nothing at all is 0. A true minus sign is one too.
function readAmount(text) {
  const plain = text.trim().replace(/^\u2212/, "-").replace(/^-\s*(\u221e|inf|infinity)$/i, "-inf");
  if (plain === "-inf") return plain;
  const amount = Number(plain);
  return Number.isFinite(amount) ? amount : null;
}
