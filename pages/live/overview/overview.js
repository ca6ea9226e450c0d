// The overview: follows one token's way through all parts, reshapes in the frame in which a slider moves, and asks the
// page to draw.

import { rankVocabulary, weigh } from "../sampling_lab/candidates.js";
import { under } from "../sampling_lab/engines.js";
import { element, fill, fmtLogit, setText } from "../sampling_lab/format.js";
import { reshape } from "../sampling_lab/reshape.js";
import { Blocks } from "./blocks.js";
import { Chances } from "./chances.js";
import { Draw } from "./draw.js";
import { Flow } from "./flow.js";
import { Line } from "./line.js";
import { Knobs } from "./knobs.js";
import { quoted, unpacked } from "./numbers.js";
import { Position } from "./position.js";
import { Tokens } from "./tokens.js";
import { Hidden, Rows, embeddingNote } from "./vectors.js";
import { STEPS, Walk } from "./walk.js";

const QUIET_MS = 300; // after this much quiet the page is told which block and head are followed
const LEAST_HEIGHT = 520; // of the board, in a low window

class Overview {
  constructor(root) {
    this.root = root;
    this.sent = 0;
    this.parts = Object.fromEntries(STEPS.map((name) => [name, root.querySelector(`.part.${name}`)]));
    for (const part of Object.values(this.parts)) {
      part.title_ = element("a", { className: "lead" });
      part.querySelector("h2").append(part.title_);
      part.append(element("p", { className: "spoken" }));
    }
    const find = (selector) => root.querySelector(selector);
    const say = (text) => this.walk.say(text);
    const choose = (what) => this.choose(what);
    this.board = find(".board");
    this.walk = new Walk(root, find(".foot"), { parts: this.parts });
    this.tokens = new Tokens(find(".text .rows"), { choose: (position) => this.act("choose", { position }), say });
    this.embedding = new Rows(find(".embedding .rows"), { say });
    this.position = new Position(find(".position .rows"), { say });
    this.blocks = new Blocks({ picture: find(".blocks svg"), heads: find(".heads"), lens: find(".lens .says-all") }, { choose, say });
    this.hidden = new Hidden(find(".hidden canvas"), { say });
    this.chances = new Chances({ list: find(".bars"), rest: find(".rest") }, { choose: (id) => this.pick(id), say });
    for (const rows of [this.embedding.root, this.position.root]) {
      rows.onclick = ({ target }) => {
        const place = [...rows.children].indexOf(target.closest(".row")) - (this.state.text.earlier ? 1 : 0);
        const token = this.state.text.rows[place];
        if (token) this.act("choose", { position: token.position });
      };
    }
    this.knobs = new Knobs(
      { sliders: find(".sliders"), said: find(".knobs .note") },
      {
        change: (name, value) => this.change({ [name]: value }),
        hold: (held) => {
          this.held = held;
          if (!held) this.settled();
        },
        settled: () => this.settled(),
      }
    );
    this.drawing = new Draw({ buttons: find(".buttons"), said: find(".draw .note") }, { act: (what, values) => this.act(what, values) });
    this.line = new Line(find(".line"), find(".falls"));
    this.flow = new Flow(find("svg.lines"));
    new ResizeObserver(() => this.fit()).observe(root);
    const resized = () => {
      if (root.isConnected) this.fit();
      else window.removeEventListener("resize", resized); // the page was left
    };
    window.addEventListener("resize", resized);
  }

  // ---- What comes from the page -----------------------------------------------------------------------------------

  receive(data, hub) {
    const bytes = hub.bytes;
    if (!bytes || stampOf(bytes) !== data.stamp) return; // the rest is still on its way
    if (this.data === data && this.bytes === bytes) return;
    const isAnswer = data.answered >= this.sent;
    const before = this.state;
    if (this.bytes !== bytes) {
      this.bytes = bytes;
      this.ranked = rankVocabulary(new Float32Array(bytes.slice(0, -4).buffer));
      this.result = null;
    }
    this.data = data;
    this.texts = new Map(data.ids.map((id, index) => [id, data.texts[index]]));
    if (!this.settings || isAnswer) this.settings = data.settings;
    this.history = data.history;
    this.state = this.stateOf(data, isAnswer && before ? data.chosen : before ? this.kept(data) : data.chosen);
    if (JSON.stringify(data.labels) !== this.builtLabels || this.builtSize !== this.ranked.size) {
      this.builtLabels = JSON.stringify(data.labels);
      this.builtSize = this.ranked.size;
      this.knobs.build(this.ranked.size, data.labels);
    }
    this.links();
    const joined = before && data.draw.n === before.draw.n + 1 && isAnswer ? this.chances.barOf(data.draw.token) : null;
    const from = joined?.getBoundingClientRect();
    this.fit(true);
    this.drawing.show(this.state, isAnswer);
    if (from) this.join(from);
  }

  // What is followed, where the reader is further on than the page.
  kept(data) {
    const { layer, head, candidate } = this.state.chosen;
    return { ...data.chosen, candidate, layer: Math.min(layer, data.model.layers - 1), head: Math.min(head, data.model.heads - 1) };
  }

  stateOf(data, chosen) {
    const way = { lens: data.way.lens, candidate: data.way.candidate };
    for (const name of ["embedding", "added", "rotation", "rotation_local", "bias", "attention", "before", "hidden"]) {
      way[name] = unpacked(data.way[name]);
    }
    const followedRow = data.text.rows.findIndex(({ position }) => position === chosen.position);
    const biasLimit = way.bias ? way.bias.values.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-9) : 1;
    const followed = data.text.rows[followedRow];
    return { ...data, way, chosen, followed, followedRow, isLast: data.next === null, biasLimit };
  }

  titles() {
    const { labels } = this.state;
    const stacked = this.root.classList.contains("stacked");
    this.root.setAttribute("aria-label", labels.way);
    for (const [name, part] of Object.entries(this.parts)) {
      part.setAttribute("aria-label", labels.titles[name]);
      setText(part.title_, (!stacked && labels.short[name]) || labels.titles[name]);
    }
  }

  links() {
    const { links, labels } = this.state;
    for (const [name, { href, title }] of Object.entries(links)) {
      const lead = this.parts[name].title_;
      lead.href = href;
      lead.title = fill(labels.open, { page: title });
      lead.onclick = (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return; // in a tab of its own
        event.preventDefault();
        this.act("open", { part: name });
      };
    }
  }

  // ---- What the reader does ---------------------------------------------------------------------------------------

  change(values) {
    this.settings = { ...this.settings, ...values };
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.reshape();
    });
  }

  settled() {
    if (!this.held) this.act("knobs");
  }

  choose(what) {
    this.state = { ...this.state, chosen: { ...this.state.chosen, ...what } };
    this.update();
    clearTimeout(this.quiet);
    this.quiet = setTimeout(() => this.act("follow"), QUIET_MS);
  }

  // Follow a candidate of the next token through the blocks, or none.
  pick(id) {
    const candidate = this.state.chosen.candidate === id ? null : id;
    this.choose({ candidate });
    this.act("follow");
  }

  // Ask, once it is quiet, how a token reads that is not among the most probable ones.
  name(token) {
    if (this.asked === token) return;
    clearTimeout(this.quiet);
    this.quiet = setTimeout(() => {
      if (this.held || this.root.querySelector("input:active")) return this.name(token); // a slider still moves
      this.asked = token;
      this.act("name", { token });
    }, QUIET_MS);
  }

  // Ask the page for something; with it goes what it does not know yet.
  act(what, values = {}) {
    clearTimeout(this.quiet);
    const { layer, head, candidate } = this.state.chosen;
    this.sent = Math.max(this.sent, Date.now()) + 1;
    this.setTriggerValue("act", { do: what, n: this.sent, layer, head, candidate, settings: this.settings, ...values });
  }

  // ---- What is drawn ----------------------------------------------------------------------------------------------

  // Take the room there is: what the window leaves below the board's top, on a wide page.
  fit(isNew = false) {
    if (!this.state) return;
    const isWide = this.root.clientWidth > 760;
    this.root.classList.toggle("stacked", !isWide);
    const top = this.root.getBoundingClientRect().top + scrolled(this.root);
    const height = isWide ? Math.max(window.innerHeight - top - 6, LEAST_HEIGHT) : 0;
    const size = `${this.root.clientWidth} ${height}`;
    if (!isNew && size === this.size) return;
    this.size = size;
    this.root.style.setProperty("--height", isWide ? `${height}px` : "auto");
    // In a low window, or in large type, the sliders and the draw stand closer.
    this.root.classList.toggle("low", isWide && height < 46 * parseFloat(getComputedStyle(this.root).fontSize));
    const { text } = this.state;
    const rows = text.rows.length + (text.earlier > 0) + (text.later > 0) + 1;
    this.root.style.setProperty("--rows", rows);
    this.titles();
    this.update();
  }

  update() {
    const { state } = this;
    const { way, labels, text } = state;
    this.tokens.show(state);
    this.embedding.show(way.embedding, text.earlier ? 1 : 0, state.followedRow, (i, dimension) =>
      fill(labels.cell, { token: quoted(text.rows[i].text), i: dimension, value: fmtLogit(way.embedding.at(i, dimension)) })
    );
    this.position.show(state);
    this.hidden.show(state, this.root.classList.contains("stacked"));
    const note = (name) => this.parts[name].querySelector(".note");
    this.tokens.note(note("text"), state);
    embeddingNote(note("embedding"), this.embedding, state);
    this.position.note(note("position"), state);
    const stacked = this.root.classList.contains("stacked");
    // All that depends on the layout is read before more is drawn: each reading after a change lays the page out anew.
    const picture = this.blocks.picture.getBoundingClientRect();
    const room = this.chances.list.clientHeight;
    const bar = 1.7 * parseFloat(getComputedStyle(this.chances.list).fontSize);
    const places = new Map();
    this.tokens.rows.forEach((row, index) => {
      const box = row.getBoundingClientRect();
      const i = index - this.tokens.first;
      const holder = this.embedding.root.children[index]?.getBoundingClientRect() ?? box;
      const middle = stacked ? holder.top - this.embedding.root.getBoundingClientRect().top + holder.height / 2 : box.top + box.height / 2 - picture.top;
      if (i < text.rows.length) places.set(i, middle);
    });
    this.blocks.show(state, places, picture.width, picture.height, stacked);
    this.blocks.note(note("blocks"));
    const n = stacked ? 10 : Math.max(Math.floor(room / bar), 3);
    if (this.built !== this.ranked || this.builtBars !== n || this.barLabels !== this.builtLabels) {
      [this.built, this.builtBars, this.barLabels] = [this.ranked, n, this.builtLabels];
      this.chances.build({ ranked: this.ranked, labels, texts: this.texts }, n);
    }
    this.reshape();
    const parts = {
      tokens: this.tokens,
      embedding: this.embedding.root,
      position: this.position.root,
      picture: this.blocks.picture,
      hidden: this.hidden.canvas,
      bars: this.chances.rows,
      drawn: this.drawing.drawButton,
    };
    if (!stacked) this.flow.draw(this.board, parts, state);
  }

  reshape() {
    const { labels, engines } = this.state;
    this.knobs.show(this.settings);
    let refused = null;
    try {
      this.result = reshape(this.ranked, under(engines[this.settings.engine], this.settings), this.history, this.result);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      refused = error.message;
    }
    this.root.classList.toggle("refused", refused !== null);
    if (refused !== null) setText(this.knobs.said, labels.problems[refused]);
    if (refused !== null || !this.result) return;
    weigh(this.ranked.start);
    weigh(this.result.final);
    this.chances.show(this.result);
    const { candidate } = this.state.chosen;
    this.chances.mark(this.state.next, candidate);
    this.knobs.tell(this.result, labels.stages);
    const drawn = this.line.show(this.result, this.state.isLast ? this.state.draw.next : null, candidate, this.texts, labels);
    if (drawn !== null && !this.texts.has(drawn)) this.name(drawn);
    const picked = this.chances.barOf(candidate);
    this.walk.rest(picked ? this.blocks.wayOf(this.chances.reading(picked), candidate) : null);
    clearTimeout(this.telling);
    const tell = () => {
      this.chances.describe();
      this.walk.tell(this.state, { ranked: this.ranked, result: this.result, blocks: this.blocks, texts: this.texts });
    };
    if (this.walk.labels !== labels || this.walk.at >= 0) tell();
    else this.telling = setTimeout(tell, 120);
  }

  // The token that was drawn goes from its bar to its row.
  join(from) {
    const to = this.tokens.rows.at(-1)?.getBoundingClientRect();
    if (!to || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const frame = this.root.getBoundingClientRect();
    const flying = element("span", { className: "flying", textContent: this.state.draw.text });
    this.root.append(flying);
    const at = ({ left, top }) => `translate(${left - frame.left}px, ${top - frame.top}px)`;
    flying.animate([{ transform: at(from) }, { transform: at(to), opacity: 0.2 }], { duration: 420, easing: "ease-in-out" }).onfinish = () => flying.remove();
    const grow = [{ opacity: 0, transform: "translateX(-12px)" }, { opacity: 1, transform: "none" }];
    const rows = [this.tokens.rows.at(-1), this.embedding.root.lastElementChild, this.position.root.lastElementChild];
    rows.forEach((row, i) => row?.animate(grow, { duration: 240, delay: 60 * i, fill: "backwards" }));
    for (const flow of this.blocks.picture.querySelectorAll(".flow.wide")) {
      flow.animate([{ strokeDasharray: "0 1000" }, { strokeDasharray: "1000 0" }], { duration: 500, delay: 120 });
    }
  }
}

const stampOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset + bytes.length - 4, 4).getUint32(0, true);

function scrolled(node) {
  const main = node.getRootNode().host?.closest?.("[data-testid=stMain]") ?? document.querySelector("[data-testid=stMain]");
  return (main?.scrollTop ?? 0) + window.scrollY;
}

export default function ({ data, parentElement, setTriggerValue }) {
  const hub = (globalThis[Symbol.for("sampling lab")] ??= {});
  const root = parentElement.querySelector(".overview");
  const view = (root.view ??= new Overview(root));
  view.setTriggerValue = setTriggerValue;
  const deliver = () => view.receive(data, hub);
  hub.deliver = deliver;
  deliver();
  return () => {
    if (hub.deliver === deliver) hub.deliver = null;
    if (!root.isConnected) view.drawing.stop(); // the page was left
  };
}
