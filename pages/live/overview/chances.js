// The most probable tokens as bars: grey what softmax gives, blue what is left after reshaping, hatched what is removed.

import { probability } from "../sampling_lab/candidates.js";
import { element, fill, fmtCount, fmtExact, fmtLogit, setText } from "../sampling_lab/format.js";
import { fmtPercent, quoted } from "./numbers.js";

const NICE = [1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1];

export class Chances {
  // choose(id): the reader follows another candidate, or with the same id none; say(text or null).
  constructor({ list, rest }, { choose, say }) {
    Object.assign(this, { list, rest, choose, say });
    this.rows = [];
    list.setAttribute("role", "listbox");
    list.onclick = (event) => this.press(event.target.closest(".bar-row"));
    list.onkeydown = (event) => this.pressed(event);
  }

  focus(place) {
    this.rows.forEach((row, rank) => (row.tabIndex = rank === place ? 0 : -1));
    this.rows[place].focus({ preventScroll: true });
  }

  press(row) {
    if (row) this.choose(this.ranked.ids[row.rank]);
  }

  pressed(event) {
    const at = this.rows.indexOf(event.target);
    if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { ArrowUp: -1, ArrowDown: 1, Home: -this.rows.length, End: this.rows.length }[event.key];
    if (step !== undefined) {
      this.focus(Math.min(Math.max(at + step, 0), this.rows.length - 1));
    } else if (event.key === "Enter" || event.key === " ") this.press(this.rows[at]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // n rows for the first ranks.
  build({ ranked, labels, texts }, n) {
    Object.assign(this, { ranked, labels, texts });
    this.list.setAttribute("aria-label", labels.bars);
    const focused = this.rows.indexOf(this.list.getRootNode().activeElement);
    this.rows = Array.from({ length: Math.min(n, ranked.size) }, (_, rank) => this.makeRow(rank));
    this.list.replaceChildren(...this.rows);
    if (focused >= 0) this.focus(Math.min(focused, this.rows.length - 1));
    this.scale = null;
  }

  makeRow(rank) {
    const { ranked } = this;
    const id = ranked.ids[rank];
    const made = element("div", { className: "bar-row" });
    made.setAttribute("role", "option");
    made.tabIndex = rank === 0 ? 0 : -1;
    made.rank = rank;
    made.p1 = probability(ranked.start, rank, rank < ranked.start.ranks.length);
    made.text = this.texts.get(id) ?? `#${id}`;
    made.was = element("i", { className: "was" });
    made.bar = element("i", { className: "now" });
    made.value = element("span", { className: "value" });
    made.append(
      element("bdi", { className: "token", textContent: made.text }),
      element("span", { className: "logit", textContent: fmtLogit(ranked.logits[rank]) }),
      element("span", { className: "track" }, made.was, made.bar),
      made.value
    );
    made.onpointerenter = () => this.say(this.reading(made, fmtExact));
    made.onpointerleave = () => this.say(null);
    return made;
  }

  reading({ rank, p1, p, text }, written = fmtPercent) {
    const id = this.ranked.ids[rank];
    const now = p > 0 ? written(p) : this.labels.gone;
    return fill(this.labels.row, { token: quoted(text), id, logit: fmtLogit(this.ranked.logits[rank]), p: written(p1), now });
  }

  show(result) {
    let largest = 0;
    let left = 1;
    for (const row of this.rows) {
      row.p = probability(result.final, row.rank, result.fate[row.rank] === -1);
      largest = Math.max(largest, row.p, row.p1);
      left -= row.p;
    }
    const full = NICE.find((nice) => nice >= largest * 0.999) ?? 1;
    for (const row of this.rows) {
      if (this.scale !== full) row.was.style.width = `${(100 * row.p1) / full}%`;
      row.bar.style.transform = `scaleX(${row.p / full})`;
      row.classList.toggle("gone", row.p === 0);
      setText(row.value, row.p > 0 ? fmtPercent(row.p) : this.labels.gone);
    }
    this.scale = full;
    const others = this.ranked.size - this.rows.length;
    const share = this.rows.length < result.final.ranks.length ? fmtPercent(Math.max(left, 0)) : fmtPercent(0);
    setText(this.rest.children[0], others > 0 ? fill(this.labels.rest, { n: fmtCount(others) }) : "");
    setText(this.rest.children[1], others > 0 ? share : "");
  }

  describe() {
    for (const row of this.rows) row.setAttribute("aria-label", this.reading(row));
  }

  // Mark the bar of the token that came, and of the one that the reader follows; null for none.
  mark(came, picked) {
    for (const row of this.rows) {
      const id = this.ranked.ids[row.rank];
      row.classList.toggle("came", id === came);
      row.classList.toggle("picked", id === picked);
      row.setAttribute("aria-selected", String(id === picked));
    }
  }

  barOf(id) {
    return this.rows.find((row) => this.ranked.ids[row.rank] === id);
  }
}
