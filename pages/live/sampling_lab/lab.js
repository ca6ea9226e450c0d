// The lab: takes logits and settings, reshapes in the frame in which a control moves, and tells the page when it is let
// go. Nothing is sent while a control moves.

import { OFF, entropyBits, probability, rankVocabulary, reshape, totalRemovedMass, weigh } from "./reshape.js";
import { element, fill, fmtCount, fmtExact, fmtLogit, fmtProbability, setText } from "./format.js";
import { Bars } from "./bars.js";
import { Curves } from "./curves.js";
import { Stages } from "./stages.js";

const REST_MS = 250; // after this much quiet, screen readers are told

class Lab {
  constructor(root) {
    const part = (name) => root.querySelector(`.${name}`);
    this.tiles = part("tiles");
    this.problem = part("problem");
    this.tools = part("tools");
    this.heads = part("heads");
    this.detail = part("detail");
    this.spoken = part("spoken");
    this.reported = []; // settings told to the page that have not come back yet
    const rest = part("rest");
    rest.append(...["token", "id", "logit", "track", "was", "now"].map((className) => element("span", { className })));
    rest.children[3].append(element("i", { className: "ghost" }), element("i", { className: "bar" }));
    const axis = element("span", { className: "axis" });
    this.axis = axis;
    this.bars = new Bars({ list: part("list"), rest, axis }, { choose: (rank) => this.choose(rank), look: (rank) => this.look(rank) });
    this.curves = new Curves(part("curves"), (rank) => this.look(rank));
    this.stages = new Stages(part("stages"), {
      change: (name, value) => this.change({ [name]: value }),
      settled: () => this.report(),
      reordered: (order, sentence) => {
        this.change({ order });
        this.say(sentence);
      },
    });
    this.stages.hold = (held) => {
      this.held = held;
      if (!held) this.report();
    };
  }

  // ---- What comes from the page --------------------------------------------------------------------------------------

  // data: {labels, crc, float, ids, texts, history}; hub: {bytes, settings}, each brought by a mount of its own.
  receive(data, hub) {
    this.data = data;
    if (!hub.bytes || !hub.settings || this.checked(hub.bytes) !== data.crc) return; // the rest is still on its way
    const incoming = JSON.stringify(hub.settings);
    const source = JSON.stringify(data);
    const renewed = this.source !== source;
    if (renewed) this.take(data, hub);
    const echo = this.reported.indexOf(incoming);
    if (echo >= 0) this.reported.splice(0, echo + 1);
    else if (renewed || incoming !== this.incoming) this.settings = hub.settings;
    this.incoming = incoming;
    if (renewed) this.rebuild();
    this.update();
  }

  checked(bytes) {
    if (this.bytes !== bytes) this.crc = crc32((this.bytes = bytes));
    return this.crc;
  }

  take(data, hub) {
    const changed = this.ranked === undefined || this.rankedCrc !== this.crc || this.source === undefined;
    this.source = JSON.stringify(data);
    this.labels = data.labels;
    this.texts = new Map(data.ids.map((id, index) => [id, data.texts[index]]));
    this.history = data.history;
    if (!changed) return;
    const aligned = hub.bytes.slice().buffer;
    this.ranked = rankVocabulary(data.float === 64 ? new Float64Array(aligned) : new Float32Array(aligned));
    this.rankedCrc = this.crc;
    this.result = this.pinned = null;
    this.hovered = null;
  }

  rebuild() {
    this.settings ??= this.data.settings;
    this.stages.build(this.labels, this.ranked.size, this.settings.order);
    this.buildTools();
    this.buildTiles();
    this.bars.build(this.ranked, this.texts, this.settings.bars, this.labels);
    this.heads.replaceChildren(
      ...["token", "id", "logit"].map((name) => element("span", { className: name, textContent: this.labels.columns[name] })),
      this.axis,
      ...["was", "now"].map((name) => element("span", { className: name, textContent: this.labels.columns[name] }))
    );
    this.curves.build(this.ranked, this.texts, this.labels);
    this.mark();
  }

  // ---- What the reader does -------------------------------------------------------------------------------------------

  change(values) {
    this.settings = { ...this.settings, ...values };
    this.frame ??= requestAnimationFrame(() => this.update());
  }

  report() {
    if (this.held) return;
    const told = JSON.stringify(this.settings);
    if (told === (this.reported.at(-1) ?? this.incoming)) return;
    this.reported.push(told);
    this.setStateValue("settings", this.settings);
  }

  choose(rank) {
    this.settings = { ...this.settings, token: this.ranked.ids[rank] };
    this.mark();
    this.showDetail();
    this.spokenSoon();
    clearTimeout(this.choosing);
    this.choosing = setTimeout(() => this.report(), REST_MS);
  }

  mark() {
    const { token } = this.settings;
    const known = token !== null && token < this.ranked.size;
    this.bars.mark(known ? this.ranked.rankOf[token] : undefined);
  }

  look(rank) {
    if (this.hovered === rank) return;
    this.hovered = rank;
    if (this.result) this.showDetail();
  }

  pin() {
    if (this.pinned) {
      this.pinned = null;
    } else {
      const weights = weigh(this.result.final);
      const byRank = new Float64Array(this.ranked.size);
      this.result.final.ranks.forEach((rank, i) => (byRank[rank] = weights[i] / this.result.final.total));
      this.pinned = { byRank, numbers: this.numbers };
    }
    this.pinButton.setAttribute("aria-pressed", String(this.pinned !== null));
    this.update();
  }

  // ---- What is drawn --------------------------------------------------------------------------------------------------

  update() {
    this.frame = null;
    if (this.drawnBars !== this.settings.bars && this.result) {
      this.bars.build(this.ranked, this.texts, this.settings.bars, this.labels);
      this.mark();
    }
    this.drawnBars = this.settings.bars;
    try {
      this.result = reshape(this.ranked, this.settings, this.history, this.result);
      this.problem.hidden = true;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      this.problem.textContent = this.labels.overflow;
      this.problem.hidden = false;
      return;
    }
    this.stages.arrange(this.settings.order);
    this.stages.show(this.result);
    this.showNumbers();
    this.bars.show(this.result, this.pinned, this.settings.log);
    this.curves.show(this.result);
    this.showTools();
    this.showDetail();
    this.spokenSoon();
  }

  buildTiles() {
    const tile = (name) => {
      const value = element("strong");
      const under = element("span", { className: "under" });
      const root = element("div", { className: "tile" }, element("span", { className: "name", textContent: this.labels.tiles[name] }), value, under);
      root.dataset.tile = name;
      return { root, value, under };
    };
    this.tile = Object.fromEntries(["entropy", "effective", "candidates", "removed"].map((name) => [name, tile(name)]));
    this.tiles.replaceChildren(...Object.values(this.tile).map(({ root }) => root));
    const bits = entropyBits(this.ranked.start);
    this.startNumbers = { bits, effective: 2 ** bits };
  }

  showNumbers() {
    const { final } = this.result;
    const bits = entropyBits(final);
    const numbers = { bits, effective: 2 ** bits, candidates: final.ranks.length, removed: totalRemovedMass(this.result) };
    this.numbers = numbers;
    const { labels, pinned, tile } = this;
    const text = {
      entropy: (n) => fill(labels.bits, { n: n.bits.toFixed(3) }),
      effective: (n) => n.effective.toFixed(n.effective < 1000 ? 2 : 0),
      candidates: (n) => fill(labels.of, { n: fmtCount(n.candidates), size: fmtCount(this.ranked.size) }),
      removed: (n) => fmtProbability(n.removed),
    };
    const at1 = { entropy: text.entropy(this.startNumbers), effective: text.effective(this.startNumbers) };
    for (const [name, { value, under }] of Object.entries(tile)) {
      setText(value, text[name](numbers));
      let note = at1[name] ? `T = 1: ${at1[name]}` : "\u00a0";
      if (name === "candidates" && numbers.candidates === 1) note = labels.no_seed;
      if (pinned) note = fill(labels.pinned, { value: text[name](pinned.numbers) });
      if (pinned && name === "removed") note += ` \u00b7 ${fill(labels.distance, { d: this.distance().toFixed(4) })}`;
      setText(under, note);
    }
  }

  // Total variation distance between the pinned distribution and the current one.
  distance() {
    const { final } = this.result;
    const weights = weigh(final);
    let shared = 0;
    for (let i = 0; i < weights.length; i++) shared += Math.min(weights[i] / final.total, this.pinned.byRank[final.ranks[i]]);
    return Math.max(1 - shared, 0);
  }

  buildTools() {
    const { labels } = this;
    const count = element("input", { type: "range", min: 10, max: 200, step: 1, value: this.settings.bars });
    count.setAttribute("aria-label", labels.count);
    count.oninput = () => this.change({ bars: Number(count.value) });
    count.onchange = () => this.report();
    count.onkeydown = () => this.stages.hold(true);
    count.onkeyup = count.onblur = () => this.stages.hold(false);
    const shown = element("output");
    const log = element("input", { type: "checkbox" });
    log.setAttribute("role", "switch");
    log.onchange = () => {
      this.change({ log: log.checked });
      this.report();
    };
    this.pinButton = element("button", { type: "button", className: "button", textContent: labels.pin, title: labels.pin_help });
    this.pinButton.setAttribute("aria-pressed", "false");
    this.pinButton.onclick = () => this.pin();
    const reset = element("button", { type: "button", className: "button", textContent: labels.reset });
    reset.onclick = () => {
      this.change({ ...OFF, order: Object.keys(OFF) });
      this.report();
    };
    this.tools.replaceChildren(
      element("label", {}, element("span", { textContent: labels.count }), count, shown),
      element("label", { className: "title" }, log, element("span", { textContent: labels.log })),
      element("span", { className: "buttons" }, this.pinButton, reset)
    );
    this.showTools = () => {
      setText(shown, String(Math.min(this.settings.bars, this.ranked.size)));
      if (Number(count.value) !== this.settings.bars) count.value = this.settings.bars;
      count.style.setProperty("--fill", (this.settings.bars - 10) / 190);
      log.checked = this.settings.log;
    };
  }

  // One token's way through the stages.
  showDetail() {
    const { token } = this.settings;
    const chosen = token !== null && token < this.ranked.size ? this.ranked.rankOf[token] : null;
    const rank = this.hovered ?? chosen ?? 0;
    const { start, steps, fate, final } = this.result;
    const id = this.ranked.ids[rank];
    const values = { token: this.texts.get(id) ?? `#${id}`, id, rank: fmtCount(rank + 1), logit: fmtLogit(this.ranked.logits[rank]) };
    const way = [["T = 1", fmtExact(probability(start, rank, fate[rank] !== -2)), ""]];
    steps.forEach((step, index) => {
      const out = fate[rank] === -2 || (fate[rank] >= 0 && fate[rank] <= index);
      const p = out ? this.labels.removed : fmtExact(probability(step.after, rank));
      if (fate[rank] === -1 || fate[rank] >= index) way.push([this.labels.titles[step.name], p, out ? "out" : ""]);
    });
    if (this.detailRank !== rank || this.detail.children.length !== way.length + 1) {
      this.detailRank = rank;
      const bdi = element("bdi", { className: "token", textContent: values.token });
      const facts = element("span", { className: "facts", textContent: fill(this.labels.facts, values) });
      const head = element("p", { className: "who" }, bdi, facts, this.biasField(id));
      this.detail.replaceChildren(head, ...way.map(() => element("span", { className: "stop" }, element("small"), element("b"))));
    }
    way.forEach(([name, p, state], index) => {
      const stop = this.detail.children[index + 1];
      if (stop.className !== `stop ${state}`) stop.className = `stop ${state}`;
      setText(stop.children[0], name);
      setText(stop.children[1], p);
    });
    weigh(final);
  }

  biasField(id) {
    const field = element("input", { type: "number", step: "any", className: "field", value: this.settings.logit_bias[id] ?? "", placeholder: "0" });
    field.setAttribute("aria-label", this.labels.bias);
    field.oninput = () => {
      const { [id]: _old, ...others } = this.settings.logit_bias;
      const amount = Number(field.value);
      if (!Number.isFinite(amount)) return;
      this.change({ logit_bias: amount === 0 ? others : { ...others, [id]: amount } });
    };
    field.onchange = () => this.report();
    return element("label", { className: "bias" }, element("span", { textContent: this.labels.bias }), field);
  }

  // ---- For screen readers ---------------------------------------------------------------------------------------------

  spokenSoon() {
    clearTimeout(this.speaking);
    this.speaking = setTimeout(() => {
      this.bars.describe();
      const said = ["entropy", "candidates", "removed"].map((name) => `${this.labels.tiles[name]} ${this.tile[name].value.textContent}`);
      this.say(said.join(", "));
    }, REST_MS);
  }

  say(sentence) {
    setText(this.spoken, sentence);
  }
}

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let bit = 0; bit < 8; bit++) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
  return n;
});

// The checksum of zlib.crc32: says whether the bytes are those the rest of the data belongs to.
function crc32(bytes) {
  let crc = 0xffffffff;
  for (let i = 0; i < bytes.length; i++) crc = (crc >>> 8) ^ CRC_TABLE[(crc ^ bytes[i]) & 255];
  return ~crc >>> 0;
}

export default function ({ data, parentElement, setStateValue }) {
  const hub = (globalThis[Symbol.for("sampling lab")] ??= {});
  const root = parentElement.querySelector(".lab");
  const lab = (root.lab ??= new Lab(root));
  lab.setStateValue = setStateValue;
  hub.deliver = () => lab.receive(data, hub);
  hub.deliver();
  return () => {
    if (root.lab === lab) hub.deliver = null;
  };
}
