// Four numbers about the distribution, each over what it was: at temperature 1, or where it was pinned.

import { entropyBits, weigh } from "./candidates.js";
import { totalRemovedMass, weightsByRank } from "./reshape.js";
import { element, fill, fmtCount, fmtProbability, setText } from "./format.js";

export class Tiles {
  constructor(root) {
    this.root = root;
  }

  build(ranked, labels) {
    this.labels = labels;
    this.write = {
      entropy: (n) => fill(labels.bits, { n: n.bits.toFixed(3) }),
      effective: (n) => n.effective.toFixed(n.effective < 1000 ? 2 : 0),
      candidates: (n) => fmtCount(n.candidates),
      removed: (n) => fmtProbability(n.removed),
    };
    const bits = entropyBits(ranked.start);
    this.start = { bits, effective: 2 ** bits };
    this.tiles = Object.keys(this.write).map((name) => {
      const value = element("strong");
      const under = element("span", { className: "under" });
      const title = element("span", { className: "name", textContent: labels.tiles[name] });
      const root = element("div", { className: "tile" }, title, value, under);
      root.dataset.tile = name;
      return { name, root, value, under };
    });
    this.root.replaceChildren(...this.tiles.map(({ root }) => root));
  }

  show(result, pinned) {
    const numbers = measures(result);
    for (const { name, value, under } of this.tiles) {
      setText(value, this.write[name](numbers));
      setText(under, this.note(name, numbers, result, pinned));
    }
  }

  note(name, numbers, result, pinned) {
    const { labels } = this;
    if (pinned) {
      const value = this.write[name](pinned.numbers);
      const was = pinned.title ? `${pinned.title}: ${value}` : fill(labels.pinned, { value });
      if (name !== "removed") return was;
      return `${was} \u00b7 ${fill(labels.distance, { d: distance(result.final, pinned).toFixed(4) })}`;
    }
    if (name === "candidates") {
      const of = fill(labels.of, { size: fmtCount(result.ranked.size) });
      return numbers.candidates === 1 ? `${of} \u00b7 ${labels.no_seed}` : of;
    }
    return name === "removed" ? "\u00a0" : `T = 1: ${this.write[name](this.start)}`;
  }

  // In a sentence, for screen readers.
  spoken() {
    const said = ({ name, value, under }) => `${this.labels.tiles[name]} ${value.textContent} ${under.textContent}`.trim();
    return this.tiles.map(said).join(", ");
  }
}

export function measures(result) {
  const bits = entropyBits(result.final);
  const candidates = result.final.ranks.length;
  return { bits, effective: 2 ** bits, candidates, removed: totalRemovedMass(result) };
}

// What later results are compared with: the numbers of one, and its weights by rank.
export const pinned = (result) => ({ ...weightsByRank(result), numbers: measures(result) });

// Total variation distance between the candidates' distribution and a pinned one.
function distance(c, { weights: theirs, total }) {
  const weights = weigh(c);
  const scale = c.total / total;
  let shared = 0;
  for (let i = 0; i < weights.length; i++) {
    const rank = c.ranks[i];
    if (rank < theirs.length) shared += Math.min(weights[i], theirs[rank] * scale);
  }
  return Math.max(1 - shared / c.total, 0);
}
