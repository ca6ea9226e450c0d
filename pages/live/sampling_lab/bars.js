// The most probable tokens as rows: raw logit, probability at temperature 1 (outlined) and now (filled). What a stage
// removed stays, hatched, with the stage's name; everything further down is one row. Only rows in view are written.

import { probability } from "./candidates.js";
import { element, fill, fmtCount, fmtLogit, fmtProbability, setText } from "./format.js";

const ROW = 26; // height in CSS pixels, as in lab.css
const LOG_FLOOR = 1e-8; // where the logarithmic scale begins
const NICE = [1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];

export class Bars {
  // choose(rank): a row was chosen; look(rank): the pointer is over it, or null.
  constructor(heads, list, rest, { choose, look }) {
    this.heads = heads;
    this.list = list;
    this.rest = rest;
    this.rows = [];
    this.axis = element("span", { className: "axis" });
    rest.append(...["token", "id", "logit", "track", "was", "now"].map((className) => element("span", { className })));
    rest.children[3].append(element("i", { className: "ghost" }), element("i", { className: "bar" }));
    this.list.onscroll = () => this.result && this.write();
    this.list.onclick = (event) => {
      const row = event.target.closest(".row");
      if (row) choose(row.rank);
    };
    this.list.onpointermove = (event) => look(event.target.closest(".row")?.rank ?? null);
    this.list.onpointerleave = () => look(null);
    this.list.onkeydown = (event) => {
      const now = this.chosen ?? -1;
      const page = Math.max(Math.floor(this.list.clientHeight / ROW) - 1, 1);
      const moves = {
        ...{ ArrowDown: now + 1, PageDown: now + page, End: this.rows.length - 1 },
        ...{ ArrowUp: now - 1, PageUp: now - page, Home: 0 },
      };
      if (!(event.key in moves)) return;
      event.preventDefault();
      choose(Math.min(Math.max(moves[event.key], 0), this.rows.length - 1));
    };
  }

  // One row for each of the first n ranks.
  build(ranked, texts, n, labels) {
    this.ranked = ranked;
    this.labels = labels;
    this.list.setAttribute("aria-label", labels.bars);
    const head = (name) => element("span", { className: name, textContent: labels.columns[name] });
    this.heads.replaceChildren(...["token", "id", "logit"].map(head), this.axis, ...["was", "now"].map(head));
    this.rows = Array.from({ length: Math.min(n, ranked.size) }, (_, rank) => {
      const id = ranked.ids[rank];
      const row = element("div", { className: "row", id: `row-${rank}` });
      row.setAttribute("role", "option");
      row.rank = rank;
      row.token = element("bdi", { className: "token", textContent: texts.get(id) ?? `#${id}` });
      row.token.title = row.token.textContent;
      row.ghost = element("i", { className: "ghost" });
      row.bar = element("i", { className: "bar" });
      row.pin = element("i", { className: "pin" });
      row.now = element("span", { className: "now" });
      row.p1 = probability(ranked.start, rank, rank < ranked.start.ranks.length);
      row.append(
        row.token,
        element("span", { className: "id", textContent: id }),
        element("span", { className: "logit", textContent: fmtLogit(ranked.logits[rank]) }),
        element("span", { className: "track" }, row.ghost, row.bar, row.pin),
        element("span", { className: "was", textContent: fmtProbability(row.p1) }),
        row.now
      );
      return row;
    });
    this.list.replaceChildren(...this.rows);
    this.list.style.setProperty("--rows", Math.max(this.rows.length, 1));
    this.top1 = this.rows[0]?.p1 ?? 1;
    this.mass1 = this.rows.reduce((sum, row) => sum + row.p1, 0);
    this.scale = this.chosen = null;
  }

  show(result, pinned, logarithmic) {
    this.result = result;
    this.pinned = pinned;
    let largest = this.top1;
    let mass = 0;
    let kept = 0;
    this.now = this.rows.map((row) => {
      const p = probability(result.final, row.rank, result.fate[row.rank] === -1);
      largest = Math.max(largest, p);
      mass += p;
      kept += p > 0;
      return p;
    });
    const full = NICE.find((nice) => nice >= largest * 0.999) ?? 1;
    if (this.scale?.full !== full || this.scale.logarithmic !== logarithmic) this.setScale(full, logarithmic);
    this.write();
    this.writeRest(mass, kept);
  }

  setScale(full, logarithmic) {
    this.scale = { full, logarithmic };
    const ticks = logarithmic ? [1e-8, 1e-6, 1e-4, 1e-2, 1] : [0, full / 4, full / 2, (3 * full) / 4, full];
    this.axis.replaceChildren(
      ...ticks.map((p) => {
        const power = logarithmic && p < 1e-3;
        const number = power ? `1e${Math.round(Math.log10(p)) + 2}` : Number((100 * p).toPrecision(4));
        const tick = element("span", { textContent: `${number} %` });
        tick.style.insetInlineStart = `${100 * this.share(p)}%`;
        return tick;
      })
    );
    for (const row of this.rows) row.ghost.style.width = `${100 * this.share(row.p1)}%`;
  }

  share(p) {
    if (!this.scale.logarithmic) return p / this.scale.full;
    return p <= LOG_FLOOR ? 0 : 1 - Math.log(p) / Math.log(LOG_FLOOR);
  }

  write() {
    const first = Math.max(Math.floor(this.list.scrollTop / ROW) - 1, 0);
    const last = Math.min(first + Math.ceil(this.list.clientHeight / ROW) + 2, this.rows.length);
    for (let rank = first; rank < last; rank++) this.writeRow(this.rows[rank], this.now[rank]);
  }

  writeRow(row, p) {
    const fate = this.result.fate[row.rank];
    if (row.gone !== (fate !== -1)) row.classList.toggle("gone", (row.gone = fate !== -1));
    const width = this.share(p);
    if (row.width !== width) row.bar.style.transform = `scaleX(${(row.width = width)})`;
    setText(row.now, this.fateText(fate, p));
    const pin = this.pinned ? 100 * this.share(this.pinned.byRank[row.rank]) : null;
    if (row.pinned !== pin) {
      row.pinned = pin;
      row.pin.style.display = pin === null ? "none" : "block";
      row.pin.style.insetInlineStart = `${pin}%`;
    }
  }

  // The probability, or the name of the stage that removed it; nothing for a token that was impossible all along.
  fateText(fate, p) {
    if (fate === -1) return fmtProbability(p);
    return fate < 0 ? "" : this.labels.titles[this.result.steps[fate].name];
  }

  writeRest(mass, keptAbove) {
    const { final } = this.result;
    const n = this.ranked.size - this.rows.length;
    this.rest.hidden = n === 0;
    if (n === 0) return;
    const [token, , , track, was, now] = this.rest.children;
    const before = Math.max(1 - this.mass1, 0);
    const after = final.ranks.length === keptAbove ? 0 : Math.max(1 - mass, 0);
    this.rest.classList.toggle("gone", after === 0);
    const kept = fmtCount(final.ranks.length - keptAbove);
    setText(token, fill(this.labels.rest, { n: fmtCount(n), kept }));
    setText(was, fmtProbability(before));
    setText(now, fmtProbability(after));
    track.children[0].style.width = `${100 * Math.min(this.share(before), 1)}%`;
    track.children[1].style.transform = `scaleX(${Math.min(this.share(after), 1)})`;
  }

  // Outline the chosen one and bring it into view; null: none.
  mark(rank) {
    if (this.chosen === rank) return;
    this.rows[this.chosen]?.classList.remove("chosen");
    this.rows[this.chosen]?.removeAttribute("aria-selected");
    this.chosen = rank;
    const row = this.rows[rank];
    if (!row) return;
    row.classList.add("chosen");
    row.setAttribute("aria-selected", "true");
    this.list.setAttribute("aria-activedescendant", row.id);
    const top = rank * ROW;
    if (top < this.list.scrollTop) this.list.scrollTop = top;
    const bottom = top + ROW - this.list.clientHeight;
    if (bottom > this.list.scrollTop) this.list.scrollTop = bottom;
  }

  // For screen readers, once the numbers have come to rest.
  describe() {
    for (const row of this.rows) {
      const { rank } = row;
      const values = {
        token: row.token.textContent,
        id: this.ranked.ids[rank],
        logit: fmtLogit(this.ranked.logits[rank]),
        was: fmtProbability(row.p1),
        now: this.fateText(this.result.fate[rank], this.now[rank]),
      };
      row.setAttribute("aria-label", fill(this.labels.row, values));
    }
  }
}
