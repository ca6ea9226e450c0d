// Above the bars: whose rules hold and what is held against them, how many bars there are, and what is done to all knobs.

import { OFF } from "./reshape.js";
import { defaults } from "./engines.js";
import { element, rangeInput, setText } from "./format.js";

const MIN_BARS = 10;
const MAX_BARS = 200;

export class Tools {
  // change(values): settings changed; hold(isHeld): a key goes down or up; settled(): a control was let go; pin(): pin
  // these settings, or let the pinned ones go; find(text): go to a token, false if there is none.
  constructor(root, { change, hold, settled, pin, find }) {
    Object.assign(this, { root, change, hold, settled, pin, find });
  }

  build(size, engines, labels) {
    Object.assign(this, { size, engines, labels });
    const current = () => engines[this.settings.engine];
    const own = this.button(labels.defaults, labels.defaults_help, () => this.set(defaults(current(), this.settings)));
    const allOff = () => this.set({ ...OFF, order: current().order });
    const none = element("option", { value: "", textContent: "\u2014" });
    this.engine = this.select(labels.engine_help, (engine) => {
      const { order, window, defaults: own } = engines[engine];
      const { penalty_last_n: last } = this.settings;
      // 0 is all tokens here, and none there: where nothing else was said, its own window.
      return { engine, order, penalty_last_n: last === 0 && window === "none" ? own.penalty_last_n ?? 0 : last };
    });
    this.against = this.select(labels.against_help, (against) => ({ against }), none);
    this.orderChanged = element("span", { className: "changed", textContent: labels.order_changed });
    this.count = this.bars();
    this.counted = element("output");
    this.log = element("input", { type: "checkbox", onchange: () => this.set({ log: this.log.checked }) });
    this.log.setAttribute("role", "switch");
    this.pinned = this.button(labels.pin, labels.pin_help, this.pin);
    const text = (textContent) => element("span", { textContent });
    this.root.replaceChildren(
      element("label", { className: "engine" }, text(labels.engine), this.engine, this.orderChanged),
      own,
      element("label", { className: "engine" }, text(labels.against), this.against),
      element("span", { className: "break" }),
      element("label", {}, text(labels.count), this.count, this.counted),
      element("label", { className: "title" }, this.log, text(labels.log)),
      this.search(),
      element("span", { className: "buttons" }, this.pinned, this.button(labels.reset, "", allOff))
    );
  }

  show(settings) {
    this.settings = settings;
    const { bars, log, engine, against, order } = settings;
    setText(this.counted, String(Math.min(bars, this.size)));
    if (this.count.valueAsNumber !== bars) this.count.value = bars;
    this.count.style.setProperty("--fill", (bars - MIN_BARS) / (MAX_BARS - MIN_BARS));
    this.log.checked = log;
    this.engine.value = engine;
    this.engine.title = this.engines[engine].about || this.labels.engine_help;
    this.against.value = against;
    const isOwn = this.engines[engine].order.every((name, index) => name === order[index]);
    this.orderChanged.style.visibility = isOwn ? "hidden" : "visible"; // its room stays: nothing moves during a drag
    this.pinned.setAttribute("aria-pressed", String(Boolean(settings.pinned)));
  }

  // A change that is made at once, and not while something moves.
  set(values) {
    this.change(values);
    this.settled();
  }

  button(textContent, title, onclick) {
    return element("button", { type: "button", className: "button", textContent, title, onclick });
  }

  // A choice of an engine; settingsOf(name): what choosing it sets. first: options in front of the engines.
  select(title, settingsOf, ...first) {
    const engines = Object.entries(this.engines);
    const options = engines.map(([value, engine]) => element("option", { value, textContent: engine.title }));
    const made = element("select", { className: "select", title }, ...first, ...options);
    made.onchange = () => this.set(settingsOf(made.value));
    return made;
  }

  bars() {
    const made = rangeInput(
      { min: MIN_BARS, max: MAX_BARS, step: 1 },
      {
        moved: (bars) => this.change({ bars }),
        held: this.hold,
        settled: this.settled,
        undo: () => {
          const { bars } = this.settings;
          return () => this.change({ bars });
        },
      }
    );
    made.setAttribute("aria-label", this.labels.count);
    return made;
  }

  search() {
    const { find, find_help: title } = this.labels;
    const made = element("input", { type: "search", className: "field find", placeholder: find, title });
    made.setAttribute("aria-label", find);
    made.onchange = () => made.setAttribute("aria-invalid", String(made.value !== "" && !this.find(made.value.trim())));
    return made;
  }
}
