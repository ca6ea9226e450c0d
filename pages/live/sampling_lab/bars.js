// The most probable tokens as rows: raw logit, probability at temperature 1 (outlined) and now (filled). What a stage
// removed stays, hatched, with the stage's name; a token from further down that an edit lifts among them, one with a
// bias and the chosen one have rows too; everything else is one row. Only rows in view are written.

import { probability } from "./candidates.js";
import { element, fill, fmtCount, fmtLogit, fmtProbability, setText } from "./format.js";

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
    this.top = this.height = 0; // what is in view: asked for when it changes, as asking lays the page out
    this.list.onscroll = () => this.see();
    new ResizeObserver(() => {
      this.measure();
      this.see();
    }).observe(list);
    this.list.onclick = (event) => {
      const row = event.target.closest(".row");
      if (row) choose(row.rank);
    };
    this.list.onpointermove = (event) => look(event.target.closest(".row")?.rank ?? null);
    this.list.onpointerleave = () => look(null);
    this.list.onkeydown = (event) => {
      const now = this.order.indexOf(this.chosen);
      const page = Math.max(Math.floor(this.list.clientHeight / this.rowHeight) - 1, 1);
      const moves = {
        ArrowDown: now + 1,
        PageDown: now + page,
        End: this.order.length - 1,
        ArrowUp: now - 1,
        PageUp: now - page,
        Home: 0,
      };
      if (!(event.key in moves) || !this.order.length) return;
      event.preventDefault();
      choose(this.order[Math.min(Math.max(moves[event.key], 0), this.order.length - 1)]);
    };
  }

  // Its name, and what stands there before its first numbers.
  name(labels) {
    this.list.setAttribute("aria-label", labels.bars);
    this.list.dataset.empty = labels.empty;
  }

  // Rows for the first n ranks, and room for others.
  build(ranked, texts, n, labels) {
    Object.assign(this, { ranked, texts, labels });
    this.n = Math.min(n, ranked.size);
    this.made = new Map(); // rank -> its row
    this.order = []; // the ranks that have rows now, from the top
    this.rows = [];
    this.measure();
    const head = (name) => element("span", { className: name, textContent: labels.columns[name] });
    this.heads.replaceChildren(...["token", "id", "logit"].map(head), this.axis, ...["was", "now"].map(head));
    this.top1 = probability(ranked.start, 0, ranked.start.ranks.length > 0);
    this.scale = this.chosen = null;
    this.rest.hidden = true;
  }

  makeRow(rank) {
    const { ranked } = this;
    const id = ranked.ids[rank];
    const row = element("div", { className: "row", id: `row-${rank}` });
    row.setAttribute("role", "option");
    row.rank = rank;
    row.token = element("bdi", { className: "token", textContent: this.texts.get(id) ?? `#${id}` });
    row.token.title = row.token.textContent;
    row.ghost = element("i", { className: "ghost" });
    row.bar = element("i", { className: "bar" });
    row.pin = element("i", { className: "pin" });
    row.now = element("span", { className: "now" });
    row.p1 = probability(ranked.start, rank, rank < ranked.start.ranks.length);
    if (this.scale) row.ghost.style.width = `${100 * this.share(row.p1)}%`;
    row.append(
      row.token,
      element("span", { className: "id", textContent: id }),
      element("span", { className: "logit", textContent: fmtLogit(ranked.logits[rank]) }),
      element("span", { className: "track" }, row.ghost, row.bar, row.pin),
      element("span", { className: "was", textContent: fmtProbability(row.p1) }),
      row.now
    );
    this.made.set(rank, row);
    return row;
  }

  // Put the rows in order: the first n by logit, each of the others where its logit, as edited, puts it.
  arrange(result, chosen) {
    const { n } = this;
    const { byRank } = result.final;
    const lifted = new Set();
    for (const rank of result.final.ranks.subarray(0, n)) if (rank >= n) lifted.add(rank);
    for (const id of Object.keys(result.settings.logit_bias)) {
      const rank = this.ranked.rankOf[id];
      if (rank >= n) lifted.add(rank);
    }
    if (chosen >= n) lifted.add(chosen);
    const others = [...lifted].sort((a, b) => byRank[b] - byRank[a] || a - b);
    const highest = new Float64Array(n + 1).fill(-Infinity); // of this rank and those below it
    for (let rank = n - 1; rank >= 0; rank--) highest[rank] = Math.max(byRank[rank], highest[rank + 1]);
    const order = [];
    for (let rank = 0; rank < n; rank++) {
      while (others.length && byRank[others[0]] > highest[rank]) order.push(others.shift());
      order.push(rank);
    }
    order.push(...others);
    if (order.length === this.order.length && order.every((rank, index) => rank === this.order[index])) return;
    this.order = order;
    this.rows = order.map((rank) => this.made.get(rank) ?? this.makeRow(rank));
    this.list.replaceChildren(...this.rows);
    this.list.style.setProperty("--rows", Math.max(this.rows.length, 1));
    this.mass1 = this.rows.reduce((sum, row) => sum + row.p1, 0);
  }

  show(result, pinned, logarithmic, chosen) {
    this.result = result;
    this.pinned = pinned;
    this.arrange(result, chosen);
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
    for (const row of this.made.values()) row.ghost.style.width = `${100 * this.share(row.p1)}%`;
  }

  share(p) {
    if (!this.scale.logarithmic) return p / this.scale.full;
    return p <= LOG_FLOOR ? 0 : 1 - Math.log(p) / Math.log(LOG_FLOOR);
  }

  // A row is higher where fingers tap it.
  measure() {
    this.rowHeight = parseFloat(getComputedStyle(this.list).getPropertyValue("--row"));
  }

  see() {
    this.top = this.list.scrollTop;
    this.height = this.list.clientHeight;
    if (this.result) this.write();
  }

  write() {
    const first = Math.max(Math.floor(this.top / this.rowHeight) - 1, 0);
    const last = Math.min(first + Math.ceil(this.height / this.rowHeight) + 2, this.rows.length);
    for (let place = first; place < last; place++) this.writeRow(this.rows[place], this.now[place]);
  }

  writeRow(row, p) {
    const fate = this.result.fate[row.rank];
    if (row.gone !== (fate !== -1)) row.classList.toggle("gone", (row.gone = fate !== -1));
    const width = this.share(p);
    if (row.width !== width) row.bar.style.transform = `scaleX(${(row.width = width)})`;
    setText(row.now, this.fateText(fate, p));
    const pin = this.pinned ? 100 * this.share((this.pinned.weights[row.rank] ?? 0) / this.pinned.total) : null;
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
    this.made.get(this.chosen)?.classList.remove("chosen");
    this.made.get(this.chosen)?.removeAttribute("aria-selected");
    this.chosen = rank;
    const row = this.made.get(rank);
    if (!row) return;
    row.classList.add("chosen");
    row.setAttribute("aria-selected", "true");
    this.list.setAttribute("aria-activedescendant", row.id);
    const top = this.order.indexOf(rank) * this.rowHeight;
    if (top < this.list.scrollTop) this.list.scrollTop = top;
    const bottom = top + this.rowHeight - this.list.clientHeight;
    if (bottom > this.list.scrollTop) this.list.scrollTop = bottom;
  }

  // For screen readers, once the numbers have come to rest.
  describe() {
    for (const [place, row] of this.rows.entries()) {
      const { rank } = row;
      const values = {
        token: row.token.textContent,
        id: this.ranked.ids[rank],
        logit: fmtLogit(this.ranked.logits[rank]),
        was: fmtProbability(row.p1),
        now: this.fateText(this.result.fate[rank], this.now[place]),
      };
      row.setAttribute("aria-label", fill(this.labels.row, values));
    }
  }
}
