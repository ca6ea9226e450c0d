// The stages as cards, in the order they run: a switch, a slider, a number, and what the stage did.

import { KERNELS, OFF, STAGES, isActive, isOff } from "./reshape.js";
import { under } from "./engines.js";
import { element, fill, fmtCount, fmtProbability, rangeInput, setText, signed } from "./format.js";

const isShown = (card) => card.getClientRects().length > 0;

export class Stages {
  // change(name, value): a control moved; hold(held): a key went down or up; settled(): a control was let go;
  // reordered(order, sentence): a stage was moved.
  constructor(list, { change, hold, settled, reordered }) {
    Object.assign(this, { list, change, hold, settled, reordered });
    this.cards = new Map();
    this.resume = {}; // the value a field had when its stage was switched off
    this.more = element("button", { type: "button", className: "button more" });
    this.more.onclick = () => this.fold(!this.list.classList.contains("folded"));
    list.after(this.more);
    list.onpointermove = (event) => this.dragged && this.dragTo(event.clientY);
    list.onpointerup = list.onlostpointercapture = () => this.drop();
  }

  // declared: every stage, as labels.py tells it.
  build(declared, order, labels) {
    this.labels = labels;
    this.cards.clear();
    this.list.replaceChildren();
    for (const stage of declared) {
      const card = stage.name === "logit_bias" ? biasCard(this, stage) : knobCard(this, stage);
      this.cards.set(stage.name, card);
    }
    this.fold(true);
    this.list.setAttribute("aria-label", labels.stages);
    this.arrange(order);
  }

  // Stages that are rarely used are out of sight until they are on, or asked for.
  fold(isFolded) {
    this.list.classList.toggle("folded", isFolded);
    const n = [...this.cards.values()].filter(({ root }) => root.classList.contains("rare")).length;
    setText(this.more, isFolded ? fill(this.labels.more, { n }) : this.labels.fewer);
    this.more.setAttribute("aria-expanded", String(!isFolded));
    this.more.hidden = n === 0;
  }

  isShown = (name) => isShown(this.cards.get(name).root);

  // Moves only the cards that are elsewhere; one that is moved while it has the focus keeps it.
  arrange(order) {
    this.order = order;
    order.forEach((name, index) => {
      const { root } = this.cards.get(name);
      const there = this.list.children[index];
      if (there === root) return;
      const { activeElement } = this.list.getRootNode();
      this.list.insertBefore(root, there ?? null);
      if (root.contains(activeElement)) activeElement.focus({ preventScroll: true });
    });
  }

  // result: what the engine made of the reader's settings; null where it refuses them.
  show(result, settings, engine) {
    const used = under(engine, settings);
    const active = settings.order.filter((name) => isActive(name, used));
    for (const [name, card] of this.cards) {
      const index = active.indexOf(name);
      const lacks = !engine.stages.includes(name);
      card.root.classList.toggle("off", index < 0);
      card.root.classList.toggle("lacks", lacks);
      setText(card.number, index < 0 ? "" : String(index + 1));
      const step = result?.steps.find((each) => each.name === name);
      setText(card.rule, lacks ? this.labels.lacks : index < 0 ? "" : this.rule(card, engine, used));
      setText(card.effect, index < 0 ? this.labels.off : step ? effect(step, result, this.labels) : "");
      card.toggle.checked = isActive(name, settings);
      card.set?.(settings);
    }
  }

  // What an engine does in a stage, and what the stage needs besides this position.
  rule({ stage }, engine, used) {
    const said = [engine.says[stage.name], stage.needs];
    if (!(stage.name in KERNELS)) said.push(this.labels.on_release);
    if (STAGES[stage.name].fields.includes("penalty_last_n") && used.penalty_last_n === 0) {
      said.push(fill(this.labels.window_none, { engine: engine.title }));
    }
    return said.filter(Boolean).join(" \u00b7 ");
  }

  // Past so many of the cards in sight.
  move(name, by) {
    const shown = this.order.filter(this.isShown);
    const from = shown.indexOf(name);
    const to = Math.min(Math.max(from + by, 0), shown.length - 1);
    if (from === to) return;
    const order = this.order.filter((other) => other !== name);
    order.splice(order.indexOf(shown[to]) + (to > from ? 1 : 0), 0, name);
    this.arrange(order);
    const values = { stage: this.labels.titles[name], place: to + 1, of: shown.length };
    this.reordered(order, fill(this.labels.moved, values));
  }

  grab(name, event) {
    event.preventDefault();
    this.dragged = name;
    this.cards.get(name).root.classList.add("dragged");
    this.list.setPointerCapture(event.pointerId);
  }

  dragTo(y) {
    const own = this.cards.get(this.dragged).root;
    const shown = [...this.list.children].filter(isShown);
    const place = shown.indexOf(own);
    const above = shown[place - 1]?.getBoundingClientRect();
    const below = shown[place + 1]?.getBoundingClientRect();
    if (above && y < above.top + above.height / 2) this.move(this.dragged, -1);
    else if (below && y > below.top + below.height / 2) this.move(this.dragged, 1);
  }

  drop() {
    if (!this.dragged) return;
    this.cards.get(this.dragged).root.classList.remove("dragged");
    this.dragged = null;
    this.settled();
  }
}

function frame(stages, stage) {
  const { name, title } = stage;
  const number = element("span", { className: "number" });
  const grip = element("button", { className: "grip", type: "button", textContent: "\u2630" });
  grip.setAttribute("aria-label", fill(stages.labels.move, { stage: title }));
  grip.title = grip.getAttribute("aria-label");
  grip.onpointerdown = (event) => {
    grip.focus();
    stages.grab(name, event);
  };
  grip.onkeydown = (event) => {
    const by = { ArrowUp: -1, ArrowDown: 1, Home: -99, End: 99 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    stages.move(name, by);
    grip.scrollIntoView({ block: "nearest" });
  };
  grip.onkeyup = () => stages.settled();
  const toggle = element("input", { type: "checkbox" });
  toggle.setAttribute("role", "switch");
  const text = element("span", { textContent: title });
  const label = element("label", { className: "title", title: stage.help }, toggle, text);
  const effect = element("p", { className: "effect" });
  const rule = element("p", { className: "rule" });
  const head = element("div", { className: "head" }, grip, label, number);
  const root = element("li", { className: "stage" }, head, effect, rule);
  root.classList.toggle("rare", stage.rare);
  root.dataset.stage = name;
  return { stage, root, head, toggle, effect, rule, number, title };
}

// A card with a slider and a field for each number of the stage; the first one's field stands in its head.
function knobCard(stages, stage) {
  const card = frame(stages, stage);
  const [first, ...others] = stage.fields.map((field, place) => knob(stages, field, place ? field.title : card.title));
  card.head.append(first.field);
  card.effect.before(...(first.slider ? [first.slider] : []));
  for (const { slider, field, label } of others) {
    const name = element("span", { textContent: label });
    const root = element("div", { className: "knob" }, name, field, ...(slider ? [slider] : []));
    others.find((each) => each.field === field).root = root;
    card.rule.before(root);
  }
  card.toggle.onchange = () => {
    const { name, off, on } = stage.fields[0];
    const isOn = card.toggle.checked;
    stages.change(name, isOn ? stages.resume[name] ?? on : off);
    for (const field of STAGES[stage.name].switches.slice(1)) {
      if (!isOn) stages.change(field, OFF[field]);
      else if (field in stages.resume) stages.change(field, stages.resume[field]);
    }
    stages.settled();
  };
  card.set = (settings) => {
    for (const each of [first, ...others]) {
      each.set(settings[each.name]);
      each.root?.classList.toggle("off", isOff(each.name, settings[each.name]));
    }
  };
  return card;
}

// A number of a stage: its field, and a slider where it has stops. declared: as labels.py tells it.
function knob(stages, declared, label) {
  const { name, off, stops, kind } = declared;
  const made = { name, label };
  const field = element("input", { type: kind === "number" ? "number" : "text", step: "any", className: "field" });
  field.setAttribute("aria-label", label);
  if (kind === "number") field.inputMode = "decimal";
  if (declared.empty) field.placeholder = declared.empty;
  made.field = field;
  if (stops.length) {
    const undo = () => {
      const [value, resumed] = [made.value, stages.resume[name]];
      return () => {
        stages.resume[name] = resumed;
        stages.change(name, value);
      };
    };
    const moved = (place) => stages.change(name, stops[place]);
    const held = (isHeld) => stages.hold(isHeld);
    made.slider = rangeInput({ min: 0, max: stops.length - 1, step: 1 }, { moved, held, settled: stages.settled, undo });
    made.slider.setAttribute("aria-label", label);
  }
  field.oninput = () => {
    const value = read(declared, field);
    field.setAttribute("aria-invalid", String(value === null));
    const refused = fill(stages.labels.refused, { stage: label, allowed: declared.allowed });
    field.setCustomValidity(value === null ? refused : "");
    if (value === null) field.reportValidity();
    else stages.change(name, value);
  };
  field.onchange = () => stages.settled();
  made.set = (value) => {
    const { slider } = made;
    if (isEqual(value, made.value) && (!slider || slider.value === made.place)) return;
    made.value = value;
    if (!isOff(name, value)) stages.resume[name] = value;
    const text = declared.empty && isOff(name, value) ? "" : String(value);
    if (slider) {
      slider.value = nearest(stops, value, off);
      made.place = slider.value;
      slider.style.setProperty("--fill", slider.value / (stops.length - 1));
      slider.setAttribute("aria-valuetext", text === "" ? stages.labels.off : signed(text));
    }
    const isBeingTyped = field.getRootNode().activeElement === field && isEqual(read(declared, field), value);
    if (!isBeingTyped) field.value = text;
  };
  return made;
}

const isEqual = (a, b) => String(a) === String(b);

// What a field says, or null where that is not allowed.
function read({ kind, off, whole, low, high, low_open: lowOpen, high_open: highOpen }, field) {
  if (field.validity.badInput) return null;
  if (kind === "ids") {
    const ids = field.value.split(/[\s,]+/).filter(Boolean).map(Number);
    return ids.every((id) => Number.isInteger(id) && id >= 0) ? ids : null;
  }
  const value = field.value === "" ? off : Number(field.value);
  const isAbove = low === null || (lowOpen ? value > low : value >= low);
  const isBelow = high === null || (highOpen ? value < high : value <= high);
  return Number.isFinite(value) && isAbove && isBelow && (!whole || Number.isInteger(value)) ? value : null;
}

// The logit bias has no slider of its own: the amounts belong to tokens, and are set where a token is looked at.
function biasCard(stages, stage) {
  const card = frame(stages, stage);
  const { name } = stage;
  card.toggle.onchange = () => {
    stages.change(name, card.toggle.checked ? stages.resume[name] ?? {} : {});
    stages.settled();
  };
  card.set = ({ [name]: value }) => {
    const any = Object.keys(value).length > 0;
    if (any) stages.resume[name] = value;
    card.toggle.disabled = !any && !stages.resume[name];
    card.effect.classList.toggle("hint", !any);
    if (!any) setText(card.effect, stages.labels.bias_hint);
  };
  return card;
}

function nearest(stops, value, off) {
  if (value === off) return stops.lastIndexOf(off);
  let best = 0;
  for (let i = 0; i < stops.length; i++) {
    if (stops[i] === off && stops[i] === 0) continue; // off is not near a small value
    if (Math.abs(stops[i] - value) < Math.abs(stops[best] - value)) best = i;
  }
  return best;
}

function effect(step, { ranked, seen, seenAdditively }, labels) {
  const { name, before, kept, note } = step;
  const said = [];
  if (kept < before.ranks.length) {
    const of = fmtCount(before.ranks.length);
    const mass = fmtProbability(step.removedMass).replace(" ", "\u00a0"); // no line begins with a %
    said.push(fill(labels.keeps, { kept: fmtCount(kept), of, mass }));
  } else if (!note && STAGES[name].kind === "filter") {
    said.push(labels.keeps_all);
  }
  const counts = { k: fmtCount(note?.k ?? 0), count: fmtCount(note?.count ?? 0), size: fmtCount(ranked.size) };
  const values = { ...note, ...counts };
  if (note) said.push(typeof note === "string" ? note : fill(labels.notes[note.kind], values)); // a text is lmcore's
  if (step.isTold) return said.join(" \u00b7 ");
  if (!said.length && name === "temperature") said.push(labels.heats[step.value < 1 ? "sharper" : "flatter"]);
  if (!said.length && (name.includes("penalty") || name === "logit_bias")) {
    const additive = name === "frequency_penalty" || name === "presence_penalty";
    const changed = name === "logit_bias" ? Object.keys(step.value).length : (additive ? seenAdditively : seen).size;
    said.push(fill(labels.edits, { count: fmtCount(changed) }));
  }
  return said.join(" \u00b7 ");
}
