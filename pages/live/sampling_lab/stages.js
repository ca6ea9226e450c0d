// The stages as cards, in the order they run: a switch, a slider, a number, and what the stage did.

import { OFF, isActive } from "./reshape.js";
import { under } from "./engines.js";
import { element, fill, fmtCount, fmtProbability, rangeInput, setText, signed } from "./format.js";

const range = (low, high, step) => {
  const digits = String(step).split(".")[1]?.length ?? 0;
  const n = Math.round((high - low) / step) + 1;
  return Array.from({ length: n }, (_, i) => Number((low + i * step).toFixed(digits)));
};
const MASS = [...range(0, 0.98, 0.01), 0.985, 0.99, 0.995, 0.999, 1];
const CUTOFF = [0, ...[-5, -4, -3, -2, -1].flatMap((e) => [1, 1.5, 2, 3, 5, 7].map((m) => Number(`${m}e${e}`)))];

// Where each slider stops; `on` is the value a stage is switched on with; allowed is what may be typed.
const fromZeroToOne = (v) => v >= 0 && v <= 1;
const KNOBS = {
  repetition_penalty: { stops: () => range(0.5, 2, 0.01), on: 1.2, allowed: (v) => v > 0 },
  frequency_penalty: { stops: () => range(-2, 2, 0.05), on: 0.5, allowed: () => true },
  presence_penalty: { stops: () => range(-2, 2, 0.05), on: 0.5, allowed: () => true },
  temperature: { stops: () => [...range(0, 2, 0.01), ...range(2.1, 5, 0.1)], on: 0.8, allowed: (v) => v >= 0 },
  top_n_sigma: { stops: () => [...range(0.1, 5, 0.05), 0], on: 1, allowed: (v) => v >= 0 },
  top_k: { stops: kStops, on: 40, allowed: (v) => v >= 0 && Number.isInteger(v) },
  top_p: { stops: () => MASS, on: 0.9, allowed: fromZeroToOne },
  min_p: { stops: () => [...range(0, 0.2, 0.005), ...range(0.21, 1, 0.01)], on: 0.05, allowed: fromZeroToOne },
  typical_p: { stops: () => MASS, on: 0.9, allowed: fromZeroToOne },
  epsilon_cutoff: { stops: () => CUTOFF, on: 0.001, allowed: (v) => v >= 0 && v < 1 },
  eta_cutoff: { stops: () => CUTOFF, on: 0.001, allowed: (v) => v >= 0 && v < 1 },
};
const EDITS = new Set(["logit_bias", "repetition_penalty", "frequency_penalty", "presence_penalty", "temperature"]);
const EMPTY_WHEN_OFF = new Set(["top_k", "top_n_sigma"]);

// 1, 2, 3 ... then by ever larger steps up to the vocabulary; the last stop is off.
function kStops(size) {
  const stops = [];
  for (let k = 1; k < size; k = Math.max(k + 1, Math.round(k * 1.06))) stops.push(k);
  return [...stops, size, 0];
}

export class Stages {
  // change(name, value): a control moved; hold(held): a key went down or up; settled(): a control was let go;
  // reordered(order, sentence): a stage was moved.
  constructor(list, { change, hold, settled, reordered }) {
    Object.assign(this, { list, change, hold, settled, reordered });
    this.cards = new Map();
    this.resume = {}; // the value a stage had when it was switched off
    list.onpointermove = (event) => this.dragged && this.dragTo(event.clientY);
    list.onpointerup = list.onlostpointercapture = () => this.drop();
  }

  build(size, order, labels) {
    this.labels = labels;
    this.cards.clear();
    this.list.replaceChildren();
    for (const name of order) {
      const card = name === "logit_bias" ? biasCard(this, name) : knobCard(this, name, KNOBS[name].stops(size));
      this.cards.set(name, card);
    }
    this.list.setAttribute("aria-label", labels.stages);
    this.arrange(order);
  }

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
    const active = settings.order.filter((name) => isActive(name, used[name]));
    for (const [name, card] of this.cards) {
      const index = active.indexOf(name);
      const lacks = !engine.stages.includes(name);
      card.root.classList.toggle("off", index < 0);
      card.root.classList.toggle("lacks", lacks);
      setText(card.number, index < 0 ? "" : String(index + 1));
      setText(card.rule, lacks ? this.labels.lacks : index < 0 ? "" : engine.says[name] ?? "");
      const said = result && index >= 0 ? effect(result.steps[index], result, this.labels) : "";
      setText(card.effect, index < 0 ? this.labels.off : said);
      card.toggle.checked = isActive(name, settings[name]);
      card.set?.(settings[name]);
    }
  }

  move(name, by) {
    const from = this.order.indexOf(name);
    const to = Math.min(Math.max(from + by, 0), this.order.length - 1);
    if (from === to) return;
    const order = this.order.filter((other) => other !== name);
    order.splice(to, 0, name);
    this.arrange(order);
    const values = { stage: this.labels.titles[name], place: to + 1, of: order.length };
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
    const above = own.previousElementSibling?.getBoundingClientRect();
    const below = own.nextElementSibling?.getBoundingClientRect();
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

function frame(stages, name) {
  const title = stages.labels.titles[name];
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
  const label = element("label", { className: "title", title: stages.labels.helps[name] }, toggle, text);
  const effect = element("p", { className: "effect" });
  const rule = element("p", { className: "rule" });
  const head = element("div", { className: "head" }, grip, label, number);
  const root = element("li", { className: "stage" }, head, effect, rule);
  root.dataset.stage = name;
  return { root, head, toggle, effect, rule, number, title };
}

function knobCard(stages, name, stops) {
  const card = frame(stages, name);
  const knob = KNOBS[name];
  const slider = rangeInput(
    { min: 0, max: stops.length - 1, step: 1 },
    {
      moved: (place) => stages.change(name, stops[place]),
      held: (isHeld) => stages.hold(isHeld),
      settled: () => stages.settled(),
      undo: () => {
        const [value, resumed] = [card.value, stages.resume[name]];
        return () => {
          stages.resume[name] = resumed;
          stages.change(name, value);
        };
      },
    }
  );
  const field = element("input", { type: "number", step: "any", className: "field" });
  slider.setAttribute("aria-label", card.title);
  field.setAttribute("aria-label", card.title);
  field.inputMode = "decimal";
  if (EMPTY_WHEN_OFF.has(name)) field.placeholder = stages.labels.off;
  card.head.append(field);
  card.effect.before(slider);

  field.oninput = () => {
    const value = field.value === "" ? OFF[name] : Number(field.value);
    const valid = !field.validity.badInput && Number.isFinite(value) && knob.allowed(value);
    field.setAttribute("aria-invalid", String(!valid));
    const values = { stage: card.title, allowed: stages.labels.allowed[name] };
    field.setCustomValidity(valid ? "" : fill(stages.labels.refused, values));
    if (valid) stages.change(name, value);
    else field.reportValidity();
  };
  field.onchange = () => stages.settled();
  card.toggle.onchange = () => {
    stages.change(name, card.toggle.checked ? stages.resume[name] ?? knob.on : OFF[name]);
    stages.settled();
  };
  card.set = (value) => {
    if (value === card.value && slider.value === card.place) return;
    card.value = value;
    if (value !== OFF[name]) stages.resume[name] = value;
    slider.value = nearest(stops, value, OFF[name]);
    card.place = slider.value;
    slider.style.setProperty("--fill", slider.value / (stops.length - 1));
    const text = EMPTY_WHEN_OFF.has(name) && value === OFF[name] ? "" : String(value);
    slider.setAttribute("aria-valuetext", text === "" ? stages.labels.off : signed(text));
    if (field.getRootNode().activeElement !== field || Number(field.value) !== value) field.value = text;
  };
  return card;
}

// The logit bias has no slider of its own: the amounts belong to tokens, and are set where a token is looked at.
function biasCard(stages, name) {
  const card = frame(stages, name);
  card.toggle.onchange = () => {
    stages.change(name, card.toggle.checked ? stages.resume[name] ?? {} : {});
    stages.settled();
  };
  card.set = (value) => {
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
  } else if (!note && !EDITS.has(name)) {
    said.push(labels.keeps_all);
  }
  const values = { k: fmtCount(note?.k ?? 0), count: fmtCount(note?.count ?? 0), size: fmtCount(ranked.size), t: note?.t };
  if (note) said.push(fill(labels.notes[note.kind], values));
  if (!said.length && name === "temperature") said.push(labels.heats[step.value < 1 ? "sharper" : "flatter"]);
  if (!said.length) {
    const additive = name === "frequency_penalty" || name === "presence_penalty";
    const changed = name === "logit_bias" ? Object.keys(step.value).length : (additive ? seenAdditively : seen).size;
    said.push(fill(labels.edits, { count: fmtCount(changed) }));
  }
  return said.join(" \u00b7 ");
}
