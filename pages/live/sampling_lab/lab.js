// The lab: takes logits and settings, reshapes in the frame in which a control moves, and tells the page when it is let
// go. Nothing is sent while a control moves.

import { rankVocabulary } from "./candidates.js";
import { KERNELS, OFF, isActive, reshape, unpacked } from "./reshape.js";
import { refusal, under } from "./engines.js";
import { fill, setText } from "./format.js";
import { Bars } from "./bars.js";
import { Curves } from "./curves.js";
import { Stages } from "./stages.js";
import { Tiles, pinned } from "./tiles.js";
import { Tools } from "./tools.js";
import { Way } from "./way.js";

const REST_MS = 250; // after this much quiet the page and screen readers are told

class Lab {
  constructor(root) {
    const part = (name) => root.querySelector(`.${name}`);
    this.root = root;
    this.problem = part("problem");
    this.spoken = part("spoken");
    this.name = crypto.getRandomValues(new Uint32Array(2)).join("-"); // a lab mounted later is another one
    this.sent = 0; // the number of the latest message to the page
    this.isAhead = false; // the reader has changed something since
    this.tools = new Tools(part("tools"), {
      change: (values) => this.change(values),
      hold: (isHeld) => this.hold(isHeld),
      settled: () => this.report(),
      pin: () => this.pin(),
      find: (text) => this.find(text),
    });
    this.tiles = new Tiles(part("tiles"));
    this.bars = new Bars(part("heads"), part("list"), part("rest"), {
      choose: (rank) => this.choose(rank),
      look: (rank) => this.look(rank),
    });
    this.way = new Way(part("detail"), {
      bias: (id, amount) => this.bias(id, amount),
      settled: () => this.report(),
    });
    this.curves = new Curves(part("curves"), (rank) => this.look(rank));
    this.stages = new Stages(part("stages"), {
      change: (name, value) => this.change({ [name]: value }),
      hold: (held) => this.hold(held),
      settled: () => this.report(),
      reordered: (order, sentence) => {
        this.change({ order });
        this.say(sentence);
      },
    });
  }

  // ---- What comes from the page -------------------------------------------------------------------------------------

  // data: {labels, engines, stages, result, crc, float, ids, texts, history}; hub: {bytes, settings, result}, each
  // brought by a mount of its own.
  receive(data, hub) {
    this.bars.name(data.labels);
    if (data.result !== null && (!hub.result || crc32(hub.result) !== data.result)) return;
    if (!hub.bytes || !hub.settings || this.checked(hub.bytes) !== data.crc) return; // the rest is still on its way
    const source = JSON.stringify(data);
    const isNew = this.source !== source;
    this.source = source;
    if (isNew) this.take(data, hub.bytes);
    this.accept(hub.settings);
    this.told = hub.result; // what lmcore computed, for the settings that came with it
    if (isNew) this.rebuild();
    this.update();
  }

  // Take settings that come from the page, unless the reader has done something since that they do not follow from:
  // each message to the page is numbered, and the settings that follow from it carry its number.
  accept({ answers, ...settings }) {
    const [lab, number] = answers ?? [];
    const isLatest = this.sent === 0 || (lab === this.name && number === this.sent);
    if (this.settings && (this.isAhead || !isLatest)) return;
    this.settings = settings;
    this.known = JSON.stringify(settings);
  }

  // Do the settings in view come from the page, so that a result of lmcore's is theirs?
  get isSettled() {
    return !this.isAhead && this.known === JSON.stringify(this.settings);
  }

  checked(bytes) {
    if (this.bytes !== bytes) this.crc = crc32((this.bytes = bytes));
    return this.crc;
  }

  take(data, bytes) {
    this.labels = data.labels;
    this.engines = data.engines;
    this.declared = data.stages;
    this.texts = new Map(data.ids.map((id, index) => [id, data.texts[index]]));
    this.history = data.history;
    if (this.ranked && this.rankedCrc === data.crc) return;
    const aligned = bytes.slice().buffer;
    this.ranked = rankVocabulary(data.float === 64 ? new Float64Array(aligned) : new Float32Array(aligned));
    this.rankedCrc = data.crc;
    this.result = this.pinned = this.pinnedFrom = this.other = this.hovered = null;
  }

  rebuild() {
    const { labels, ranked, texts } = this;
    const builtFor = JSON.stringify([labels, this.declared]);
    if (this.builtFor !== builtFor) {
      // Controls are made anew only where they would differ: one may be held just now, or have the focus.
      this.builtFor = builtFor;
      this.stages.build(this.declared, this.settings.order, labels);
      this.tools.build(ranked.size, this.engines, labels);
    }
    this.tiles.build(ranked, labels);
    this.curves.build(ranked, texts, labels);
    this.way.build(ranked, texts, labels);
    this.builtBars = null;
  }

  // ---- What the reader does -----------------------------------------------------------------------------------------

  change(values) {
    this.settings = { ...this.settings, ...values };
    this.isAhead = true;
    this.frame ??= requestAnimationFrame(() => this.update());
  }

  hold(held) {
    this.held = held;
    if (!held) this.report();
  }

  report() {
    if (this.held || !this.isAhead) return;
    this.isAhead = false;
    this.setStateValue("settings", { ...this.settings, message: [this.name, ++this.sent] });
  }

  choose(rank) {
    this.bars.mark(rank); // at once: the next key counts from here
    this.change({ token: this.ranked.ids[rank] });
    clearTimeout(this.choosing);
    this.choosing = setTimeout(() => this.report(), REST_MS);
  }

  look(rank) {
    if (this.hovered === rank) return;
    this.hovered = rank;
    if (this.result) this.showWay();
  }

  bias(id, amount) {
    const { [id]: _old, ...others } = this.settings.logit_bias;
    this.change({ logit_bias: amount === 0 ? others : { ...others, [id]: amount } });
  }

  pin() {
    const names = [...Object.keys(OFF), "engine", "order"];
    const kept = Object.fromEntries(names.map((name) => [name, this.settings[name]]));
    this.change({ pinned: this.settings.pinned ? null : kept });
    this.report();
  }

  // ---- What is drawn ------------------------------------------------------------------------------------------------

  update() {
    this.frame = null;
    if (this.builtBars !== this.settings.bars) {
      this.builtBars = this.settings.bars;
      this.bars.build(this.ranked, this.texts, this.settings.bars, this.labels);
    }
    this.tools.show(this.settings);
    this.stages.arrange(this.settings.order);
    const result = this.reshaped(this.settings, this.result, (reason) => this.refuse(reason));
    this.stages.show(result, this.settings, this.engines[this.settings.engine]);
    if (!result) return;
    this.result = result;
    this.refuse(null);
    const chosen = this.chosenRank();
    const beside = this.beside();
    this.tiles.show(this.result, beside);
    this.bars.show(this.result, beside, this.settings.log, chosen);
    this.bars.mark(chosen);
    this.curves.show(this.result, chosen);
    this.showWay();
    this.speakSoon();
  }

  // The result of settings, under the engine they name; null, once refused(reason) was told, where there is none.
  reshaped(settings, previous, refused) {
    const engine = this.engines[settings.engine];
    const used = under(engine, settings);
    const limit = refusal(engine, used);
    if (limit) {
      const { field, value, allowed } = limit;
      const { title } = this.declared.find(({ fields }) => fields.some(({ name }) => name === field));
      refused?.(fill(this.labels.problems.refused, { engine: engine.title, stage: title, value, allowed }));
      return null;
    }
    if (settings.order.some((name) => isActive(name, used) && !(name in KERNELS))) {
      const isOurs = settings === this.settings && this.isSettled && this.told?.length;
      if (isOurs) return unpacked(this.told, this.ranked, used, this.history);
      refused?.(this.labels[this.isAhead ? "on_release" : "waiting"]);
      return null;
    }
    try {
      return reshape(this.ranked, used, this.history, previous?.steps.some(({ isTold }) => isTold) ? null : previous);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      refused?.(this.labels.problems[error.message]);
      return null;
    }
  }

  // What the picture is held against: another engine under the same knobs, or what was pinned; null: nothing.
  beside() {
    const { against } = this.settings;
    if (!against) return this.pinnedNow();
    const { order, title } = this.engines[against];
    this.other = this.reshaped({ ...this.settings, engine: against, order }, this.other);
    return this.other && { ...pinned(this.other), title };
  }

  // The same logits under the settings that were pinned.
  pinnedNow() {
    const kept = this.settings.pinned;
    if (this.pinnedFrom === kept) return this.pinned;
    this.pinnedFrom = kept;
    const result = kept && this.reshaped(kept, null);
    return (this.pinned = result && pinned(result));
  }

  // Go to a token by its id, or by its text where that is known: an equal one first, else the first that holds it.
  find(text) {
    const { ranked, texts } = this;
    const isId = /^\d+$/.test(text) && Number(text) < ranked.size;
    const ranks = [...texts.keys()].map((id) => ranked.rankOf[id]).sort((a, b) => a - b);
    const named = (test) => ranks.find((rank) => test(texts.get(ranked.ids[rank])));
    const found = named((name) => name === text) ?? (isId ? ranked.rankOf[text] : named((name) => name.includes(text)));
    if (found !== undefined) this.choose(found);
    return found !== undefined;
  }

  // Say why there is no distribution under these settings; the picture of the last one fades. null: there is one.
  refuse(reason) {
    this.root.classList.toggle("refused", reason !== null);
    this.problem.hidden = reason === null;
    if (reason !== null) this.problem.textContent = reason;
  }

  chosenRank() {
    const { token } = this.settings;
    return token !== null && token < this.ranked.size ? this.ranked.rankOf[token] : null;
  }

  showWay() {
    this.way.show(this.result, this.hovered ?? this.chosenRank() ?? 0);
  }

  // ---- For screen readers -------------------------------------------------------------------------------------------

  speakSoon() {
    clearTimeout(this.speaking);
    this.speaking = setTimeout(() => {
      this.bars.describe();
      this.say(this.tiles.spoken());
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
  const deliver = () => lab.receive(data, hub);
  hub.deliver = deliver;
  deliver();
  return () => {
    if (hub.deliver === deliver) hub.deliver = null; // a lab mounted since keeps its own
  };
}
