// The guided walk: part by part, one or two sentences with this text's numbers; and the same sentences for who listens.

import { element, fill, fmtCount, fmtLogit, setText } from "../sampling_lab/format.js";
import { totalRemovedMass } from "../sampling_lab/reshape.js";
import { move } from "./motion.js";
import { fmtPercent, quoted } from "./numbers.js";
import { degrees } from "./position.js";

export const STEPS = ["text", "embedding", "position", "blocks", "lens", "hidden", "chances", "knobs", "draw"];

export class Walk {
  // at: the step shown, -1 for none.
  constructor(root, foot, { parts }) {
    Object.assign(this, { root, parts, at: -1, said: {} });
    const button = () => element("button", { type: "button", className: "button" });
    this.begin = button();
    this.backward = button();
    this.forward = button();
    this.end = button();
    this.place = element("span", { className: "place" });
    this.caption = element("p", { className: "caption" });
    this.caption.setAttribute("aria-live", "polite");
    foot.append(this.begin, this.backward, this.place, this.forward, this.end, this.caption);
    this.begin.onclick = () => this.go(0);
    this.backward.onclick = () => this.go(Math.max(this.at - 1, 0));
    this.forward.onclick = () => this.go(this.at + 1);
    this.end.onclick = () => this.go(-1);
    root.addEventListener("keydown", (event) => this.pressed(event));
  }

  pressed(event) {
    if (this.at < 0 || event.defaultPrevented || event.target.matches("input, select")) return;
    if (event.key === "Escape") this.go(-1);
    else if (event.key === "ArrowRight") this.go(this.at + 1);
    else if (event.key === "ArrowLeft") this.go(Math.max(this.at - 1, 0));
    else return;
    event.preventDefault();
  }

  go(at) {
    const had = this.at >= 0;
    this.at = at < STEPS.length ? at : -1;
    if (this.at >= 0) this.root.dataset.walk = STEPS[this.at];
    else delete this.root.dataset.walk;
    for (const [name, part] of Object.entries(this.parts)) part.classList.toggle("lit", name === STEPS[this.at]);
    this.write();
    if (this.at >= 0) {
      this.forward.focus({ preventScroll: true });
      this.parts[STEPS[this.at]].scrollIntoView({ block: "nearest", behavior: "instant" });
      move(STEPS[this.at], this.root);
    } else if (had) this.begin.focus({ preventScroll: true });
  }

  // Say something about what the pointer rests on; null: what is said otherwise.
  say(text) {
    this.resting = text;
    this.write();
  }

  // What is said while the pointer rests on nothing; null: how to use it.
  rest(text) {
    if (this.picked === text) return;
    this.picked = text;
    this.write();
  }

  write() {
    const { labels } = this;
    if (!labels) return;
    const walks = this.at >= 0;
    setText(this.begin, labels.walk);
    setText(this.backward, labels.backward);
    setText(this.forward, this.at === STEPS.length - 1 ? labels.end : labels.forward);
    setText(this.end, labels.end);
    setText(this.place, walks ? fill(labels.step, { place: this.at + 1, of: STEPS.length }) : "");
    this.begin.hidden = walks;
    for (const node of [this.backward, this.place, this.forward, this.end]) node.hidden = !walks;
    this.caption.classList.toggle("resting", Boolean(this.resting) || !walks);
    setText(this.caption, this.resting ?? (walks ? this.said[STEPS[this.at]] : (this.picked ?? labels.hint)));
  }

  // Make the sentences of all parts anew.
  tell(state, { ranked, result, blocks, texts }) {
    const { labels, model, text, way, chosen, followed, draw } = state;
    this.labels = labels;
    const count = fmtCount;
    const probability = (rank, c) => fmtPercent(c.weights[rank] / c.total);
    const name = (rank) => quoted(texts.get(ranked.ids[rank]) ?? `#${ranked.ids[rank]}`);
    const [i, weight] = blocks.most(chosen.layer, chosen.head);
    const other = i < 0 ? fill(labels.earlier, { n: count(text.earlier) }) : quoted(text.rows[i].text);
    const lens = way.lens;
    const token = quoted(followed.text);
    const values = {
      model: model.name,
      n: count(text.length),
      token,
      id: followed.id,
      vocab: count(model.vocab),
      d: count(model.d),
      position: chosen.position,
      layers: model.layers,
      block: chosen.layer,
      head: blocks.headName(),
      other,
      weight: fmtPercent(weight),
      first: quoted(lens[1].text),
      middle: quoted(lens[chosen.layer + 1].text),
      last: quoted(lens.at(-1).text),
      logit: fmtLogit(ranked.logits[0]),
      best: name(0),
      seed: draw.seed,
      nth: draw.n + 1,
    };
    const said = (part, more = {}) => fill(labels.captions[part], { ...values, ...more });
    const first = Math.max(chosen.head, 0);
    const turns = way.rotation && {
      fast: degrees(way.rotation.at(state.followedRow, 0, 0), way.rotation.at(state.followedRow, 0, 1)),
      slow: degrees(...[0, 1].map((part) => way.rotation.at(state.followedRow, way.rotation.shape[1] - 1, part))),
    };
    const far = text.rows[0];
    const bias = way.bias && { head: first, other: quoted(far.text), bias: fmtLogit(way.bias.at(first, 0)) };
    const now = result.final;
    const at = result.fate[0] === -1 ? fmtPercent(Math.exp((now.byRank[0] - now.logits[0]) / now.temperature) / now.total) : labels.gone;
    this.said = {
      text: said("text"),
      embedding: said("embedding"),
      position: said(`position.${model.encoding}`, turns ?? bias ?? {}),
      blocks: said("blocks"),
      lens: said("lens", { p: fmtPercent(lens.at(-1).p) }),
      hidden: said("hidden"),
      chances: said("chances", {
        p: probability(0, ranked.start),
        second: ranked.size > 1 ? name(1) : "",
        q: ranked.size > 1 ? probability(1, ranked.start) : "",
      }),
      knobs: said("knobs", {
        t: result.settings.temperature,
        p: probability(0, ranked.start),
        now: at,
        kept: count(now.ranks.length),
        removed: fmtPercent(totalRemovedMass(result)),
      }),
      draw: said("draw", { kept: count(now.ranks.length), n: count(text.length + 1) }),
    };
    for (const [part, sentence] of Object.entries(this.said)) setText(this.parts[part].querySelector(".spoken"), sentence);
    this.write();
  }
}
