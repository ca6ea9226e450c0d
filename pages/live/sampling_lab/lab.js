// The lab: takes logits and settings, reshapes in the frame in which a control moves, and tells the page when it is let
// go. Nothing is sent while a control moves.

import { rankVocabulary } from "./candidates.js";
import { OFF, reshape } from "./reshape.js";
import { under } from "./engines.js";
import { setText } from "./format.js";
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
    this.reported = []; // settings told to the page that have not come back yet
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

  // data: {labels, engines, crc, float, ids, texts, history}; hub: {bytes, settings}, each brought by a mount of its own.
  receive(data, hub) {
    if (!hub.bytes || !hub.settings || this.checked(hub.bytes) !== data.crc) return; // the rest is still on its way
    const source = JSON.stringify(data);
    const isNew = this.source !== source;
    this.source = source;
    if (isNew) this.take(data, hub.bytes);
    const incoming = JSON.stringify(hub.settings);
    const echo = this.reported.indexOf(incoming);
    if (echo >= 0) this.reported.splice(0, echo + 1); // what was told comes back; the reader may be further on
    else if (!this.settings || incoming !== this.incoming) this.settings = hub.settings;
    this.incoming = incoming;
    if (isNew) this.rebuild();
    this.update();
  }

  checked(bytes) {
    if (this.bytes !== bytes) this.crc = crc32((this.bytes = bytes));
    return this.crc;
  }

  take(data, bytes) {
    this.labels = data.labels;
    this.engines = data.engines;
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
    const builtFor = JSON.stringify([labels, ranked.size]);
    if (this.builtFor !== builtFor) {
      // Controls are made anew only where they would differ: one may be held just now, or have the focus.
      this.builtFor = builtFor;
      this.stages.build(ranked.size, this.settings.order, labels);
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
    this.frame ??= requestAnimationFrame(() => this.update());
  }

  hold(held) {
    this.held = held;
    if (!held) this.report();
  }

  report() {
    if (this.held) return;
    const told = JSON.stringify(this.settings);
    if (told === (this.reported.at(-1) ?? this.incoming)) return;
    this.reported.push(told);
    this.setStateValue("settings", this.settings);
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
    const names = [...Object.keys(OFF), "engine", "order", "penalty_last_n"];
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
    try {
      return reshape(this.ranked, under(this.engines[settings.engine], settings), this.history, previous);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      refused?.(error.message);
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
    if (reason !== null) this.problem.textContent = this.labels.problems[reason];
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
