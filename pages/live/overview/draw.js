// Draw, step back, play and stop. The page's own sampler draws, with the session's seed; here is only asked for it.

import { element, fill, fmtProbability, setText } from "../sampling_lab/format.js";
import { fmtValue, quoted } from "./numbers.js";

const PACES = [0.5, 1, 2, 5, 0]; // tokens a second; 0 is as fast as they come

export class Draw {
  // act(what, values): ask the page.
  constructor({ buttons, said }, { act }) {
    Object.assign(this, { act, said });
    const button = (name, className = "") => {
      const made = element("button", { type: "button", className: `button ${className}` });
      this[`${name}Button`] = made;
      return made;
    };
    button("draw", "primary").onclick = () => this.once();
    button("play", "small-button").onclick = () => (this.playing ? this.stop() : this.play());
    button("back", "small-button").onclick = () => this.stop() || act("back");
    button("restart", "small-button").onclick = () => this.stop() || act("restart");
    button("take", "take").onclick = () => this.stop() || act("take");
    this.paceInput = element("select", { className: "select" });
    this.paceInput.onchange = () => this.due();
    this.seedInput = element("input", { type: "number", className: "field", min: 0, max: 2 ** 32 - 1, step: 1 });
    this.seedInput.inputMode = "numeric";
    this.seedInput.onchange = () => {
      const seed = Number(this.seedInput.value);
      if (this.seedInput.value !== "" && this.seedInput.validity.valid) act("seed", { seed });
      else this.seedInput.reportValidity();
    };
    this.seedName = element("span");
    this.paceName = element("span");
    this.seedLabel = element("label", { className: "small" }, this.seedName, this.seedInput);
    this.paceLabel = element("label", { className: "small" }, this.paceName, this.paceInput);
    buttons.append(this.drawButton, this.playButton, this.backButton, this.restartButton, this.seedLabel, this.paceLabel, this.takeButton);
  }

  once() {
    this.stop();
    this.ask();
  }

  ask() {
    if (this.waiting || !this.can) return;
    this.waiting = true;
    this.since = performance.now();
    this.act("draw");
  }

  play() {
    this.playing = true;
    this.write();
    this.ask();
  }

  // Nothing more is asked for; what was asked for comes. Returns undefined, so that more can follow.
  stop() {
    this.playing = false;
    clearTimeout(this.timer);
    this.write();
  }

  // The next token, in its time.
  due() {
    clearTimeout(this.timer);
    if (!this.playing || this.waiting) return;
    const pace = Number(this.paceInput.value);
    const left = pace ? 1000 / pace - (performance.now() - this.since) : 0;
    this.timer = setTimeout(() => this.ask(), Math.max(left, 30));
  }

  build(labels) {
    if (this.labels === labels) return;
    this.labels = labels;
    const now = this.paceInput.value || "1";
    this.paceInput.replaceChildren(
      ...PACES.map((pace) => element("option", { value: pace, textContent: pace || labels.fast }))
    );
    this.paceInput.value = now;
    setText(this.seedName, labels.seed);
    setText(this.paceName, labels.pace);
    this.takeButton.title = labels.take_help;
  }

  // answered: the page has carried out all that was asked of it.
  show(state, answered) {
    const { draw, labels, take } = state;
    this.state = state;
    this.build(labels);
    if (answered) this.waiting = false;
    this.can = draw.end === "";
    if (!this.can) this.playing = false;
    if (this.seedInput.getRootNode().activeElement !== this.seedInput) this.seedInput.value = draw.seed;
    this.drawButton.disabled = this.playButton.disabled = !this.can;
    this.backButton.disabled = this.restartButton.disabled = draw.n === 0;
    this.takeButton.disabled = !take.possible;
    this.takeButton.title = take.same ? labels.take_help : `${labels.take_help} ${labels.take_changed}`;
    this.write();
    setText(this.said, this.sentence(state));
    this.due();
  }

  sentence({ draw, labels }) {
    if (draw.end) return labels.ends[draw.end];
    if (draw.token === null) return "";
    if (draw.by_hand) return fill(labels.taken, { token: quoted(draw.text) });
    return fill(labels.drawn, { u: fmtValue(draw.u), token: quoted(draw.text), p: fmtProbability(draw.p) });
  }

  write() {
    const { labels } = this;
    if (!labels) return;
    setText(this.drawButton, labels.draw);
    setText(this.playButton, this.playing ? labels.stop : labels.play);
    this.playButton.classList.toggle("on", Boolean(this.playing));
    for (const [made, sign, name] of [[this.backButton, "\u2190", labels.back], [this.restartButton, "\u21e4", labels.restart]]) {
      setText(made, sign);
      made.title = name;
      made.setAttribute("aria-label", name);
    }
    setText(this.takeButton, labels.take);
  }
}
