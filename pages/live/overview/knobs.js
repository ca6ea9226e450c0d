// Three sliders of the sampler: temperature, top-k, top-p. What else the sampling page has set goes on holding.

import { totalRemovedMass } from "../sampling_lab/reshape.js";
import { element, fill, fmtCount, rangeInput, setText } from "../sampling_lab/format.js";
import { fmtPercent } from "./numbers.js";

const steps = (n, by) => Array.from({ length: n + 1 }, (_, i) => Number((i * by).toFixed(3)));
const STOPS = {
  temperature: () => steps(200, 0.01),
  top_k: (size) => {
    const stops = [];
    for (let k = 1; k < size; k = Math.max(k + 1, Math.round(k * 1.12))) stops.push(k);
    return [...stops, 0]; // 0 is off
  },
  top_p: () => [...steps(99, 0.01), 0.995, 0.999, 1],
};
const OFF = { top_k: 0, top_p: 1 };

export class Knobs {
  // change(name, value): a slider moves; hold(held): a key is down; settled(): it was let go.
  constructor({ sliders, said }, { change, hold, settled }) {
    Object.assign(this, { sliders, said, change, hold, settled });
  }

  build(size, labels) {
    this.labels = labels;
    this.size = size;
    this.knobs = Object.entries(STOPS).map(([name, stopsOf]) => this.knob(name, stopsOf(size)));
    this.sliders.replaceChildren(...this.knobs.map(({ root }) => root));
  }

  knob(name, stops) {
    const number = element("output", {});
    const knob = { name, stops, number, value: null };
    knob.input = rangeInput(
      { min: 0, max: stops.length - 1, step: 1 },
      {
        moved: (place) => this.change(name, stops[place]),
        held: (held) => this.hold(held),
        settled: () => this.settled(),
        undo: () => {
          const { value } = knob;
          return () => this.change(name, value);
        },
      }
    );
    knob.input.setAttribute("aria-label", this.labels[name]);
    const head = element("span", { className: "knob-head" }, element("span", { textContent: this.labels[name] }), number);
    knob.root = element("label", { className: "knob" }, head, knob.input);
    return knob;
  }

  show(settings) {
    for (const knob of this.knobs) {
      const value = settings[knob.name];
      if (value === knob.value) continue;
      knob.value = value;
      const place = nearest(knob.stops, value, OFF[knob.name]);
      knob.input.value = place;
      knob.input.style.setProperty("--fill", place / (knob.stops.length - 1));
      const isOff = value === OFF[knob.name];
      const text = isOff ? this.labels.off : knob.name === "temperature" && value === 0 ? this.labels.greedy : fmtNumber(value);
      setText(knob.number, text);
      knob.input.setAttribute("aria-valuetext", text);
      knob.root.classList.toggle("off", isOff || (knob.name === "temperature" && value === 1));
    }
  }

  tell(result, titles) {
    const values = {
      kept: fmtCount(result.final.ranks.length),
      vocab: fmtCount(this.size),
      removed: fmtPercent(totalRemovedMass(result)),
    };
    const others = result.steps.filter(({ name }) => !(name in STOPS)).map(({ name }) => titles[name]);
    const also = others.length ? ` · ${fill(this.labels.others_on, { names: others.join(", ") })}` : "";
    const one = result.final.ranks.length === 1 ? ` · ${this.labels.one}` : "";
    setText(this.said, fill(this.labels.kept, values) + one + also);
  }
}

const fmtNumber = (value) => (Number.isInteger(value) && value > 1 ? fmtCount(value) : String(value));

function nearest(stops, value, off) {
  if (value === off) return stops.lastIndexOf(off);
  let best = 0;
  for (let i = 0; i < stops.length; i++) {
    if (stops[i] === off && off === 0) continue; // off is not near a small number
    if (Math.abs(stops[i] - value) < Math.abs(stops[best] - value)) best = i;
  }
  return best;
}
