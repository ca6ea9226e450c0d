// Three charts. Over the rank of all V tokens, on a logarithmic axis: the cumulative probability with the top-p line,
// and the probability itself; they are drawn through a few hundred ranks, the sums behind them run over every token.
// Over the temperature: the probability of a few tokens, with a mark where the temperature is now.

import { weigh } from "./candidates.js";
import { Chart } from "./chart.js";
import { element, fill, fmtCount, fmtExact, fmtProbability } from "./format.js";

const LEAST = 1e-12; // the log axis of probabilities goes down to here at most
const HEAT_STEPS = 100; // temperatures 0, 0.02 ... 2
const HEAT_MAX = 2;
const HEAT_TOKENS = 5; // the most probable ones; the chosen one is added
const PERCENTS = [0, 0.25, 0.5, 0.75, 1].map((p) => [p, `${100 * p} %`]);

export class Curves {
  // look(rank or null): the crosshair is at this token.
  constructor(root, look) {
    const token = (place, c) => (place === null ? null : this.exact(place, c)?.token ?? null);
    this.cumulative = new Chart((place) => look(token(place, this.summed)));
    this.falling = new Chart((place) => look(token(place, this.result?.final)));
    this.heat = new Chart(() => {});
    this.charts = [this.cumulative, this.falling, this.heat];
    this.chosen = null;
    root.replaceChildren(...this.charts.map((chart) => chart.root));
    new ResizeObserver(() => {
      if (!this.result) return; // the charts are not built yet
      for (const chart of this.charts) chart.fit();
      this.show(this.result, this.chosen);
    }).observe(root);
  }

  build(ranked, texts, labels) {
    this.ranked = ranked;
    this.labels = labels;
    this.name = (rank) => texts.get(ranked.ids[rank]) ?? `#${ranked.ids[rank]}`;
    this.points = sampledRanks(ranked.size);
    this.start = sample(ranked.start, this.points);
    const span = Math.max(Math.log(ranked.size), 1e-9);
    const byRank = {
      x: labels.rank,
      size: ranked.size,
      share: (rank) => Math.log(rank + 1) / span,
      positionOf: (share) => Math.exp(share * span) - 1,
      xTicks: oneTwoFive(ranked.size).map((rank) => [rank - 1, fmtCount(rank)]),
    };
    this.cumulative.build({
      ...byRank,
      title: labels.cumulative,
      y: (p) => p,
      yTicks: PERCENTS,
      read: (place) => this.reading(place, this.summed, "sum"),
    });
    const least = Math.max(this.start.probs.findLast((p) => p > 0) ?? LEAST, LEAST);
    const floor = 10 ** Math.floor(Math.log10(least) - 0.5);
    this.falling.build({
      ...byRank,
      title: labels.falling,
      y: (p) => (p <= floor ? 0 : 1 - Math.log10(p) / Math.log10(floor)),
      yTicks: decades(floor),
      read: (place) => this.reading(place, this.result?.final, "p"),
    });
    for (const chart of [this.cumulative, this.falling]) {
      chart.legend.replaceChildren(key("now", labels.now), key("was", "T = 1"));
    }
    this.buildHeat();
  }

  show(result, chosen) {
    this.result = result;
    this.chosen = chosen;
    for (const chart of this.charts) if (!chart.width) chart.fit();
    const nucleus = result.steps.find((step) => step.name === "top_p" && !step.isTold);
    this.summed = nucleus ? nucleus.before : result.final; // what top-p adds up
    const now = sample(result.final, this.points);
    const summed = nucleus ? sample(nucleus.before, this.points) : now;
    this.cumulative.draw({ was: [this.points, this.start.sums], now: [this.points, summed.sums] });
    this.cumulative.mark(nucleus ? nucleus.value : null, nucleus ? nucleus.kept - 1 : null);
    this.falling.draw({ was: [this.points, this.start.probs], now: [this.points, now.probs] });
    this.falling.mark(null, null);
    this.showHeat();
  }

  reading(place, c, shown) {
    const found = this.exact(place, c);
    const rank = fmtCount(place + 1);
    if (!found) return { text: fill(this.labels.reading_none, { rank }) };
    const values = { rank, token: this.name(found.token), p: fmtExact(found.p), sum: fmtExact(found.sum) };
    return { text: fill(this.labels.reading, values), value: found[shown] };
  }

  // The token at this place in the order of c, its probability, and the sum up to it; null: there is none.
  exact(place, c) {
    if (!c || place >= c.ranks.length) return null; // under settings that are refused there is no c
    const weights = weigh(c);
    return { token: c.ranks[place], p: weights[place] / c.total, sum: c.sums[place] / c.total };
  }

  // ---- Probability against temperature: softmax(z / T) alone, without the other stages ------------------------------

  buildHeat() {
    const at = (position) => (position * HEAT_MAX) / HEAT_STEPS;
    this.heat.build({
      title: this.labels.heat,
      x: this.labels.heat_axis,
      size: HEAT_STEPS + 1,
      share: (position) => position / HEAT_STEPS,
      positionOf: (share) => share * HEAT_STEPS,
      xTicks: [0, 0.5, 1, 1.5, 2].map((t) => [(t * HEAT_STEPS) / HEAT_MAX, String(t)]),
      y: (p) => p,
      yTicks: PERCENTS,
      read: (position) => {
        if (this.totals.length <= HEAT_STEPS) return { text: "\u2026" };
        const told = (rank) => `${this.name(rank)} ${fmtProbability(this.heated(rank, position))}`;
        const values = { t: at(position).toFixed(2), tokens: this.heatTokens().map(told).join(", ") };
        return { text: fill(this.labels.heat_reading, values) };
      },
    });
    this.totals = [];
    clearTimeout(this.summing);
    const sumSome = () => {
      const until = performance.now() + 6; // a few at a time: a slider may be moving
      while (this.totals.length <= HEAT_STEPS && performance.now() < until) {
        this.totals.push(this.total(at(this.totals.length)));
      }
      if (this.totals.length <= HEAT_STEPS) this.summing = setTimeout(sumSome, 30);
      else if (this.result) this.showHeat();
    };
    this.summing = setTimeout(sumSome, 200);
  }

  total(t) {
    if (t === 0) return 1;
    const { logits } = this.ranked.start;
    let sum = 0;
    for (let i = 0; i < logits.length; i++) {
      const weight = Math.exp((logits[i] - logits[0]) / t);
      if (weight === 0) break; // and so are all that follow
      sum += weight;
    }
    return sum;
  }

  heated(rank, position) {
    if (position === 0) return rank === 0 ? 1 : 0;
    const { logits } = this.ranked;
    return Math.exp(((logits[rank] - logits[0]) * HEAT_STEPS) / (position * HEAT_MAX)) / this.totals[position];
  }

  heatTokens() {
    const n = Math.min(HEAT_TOKENS, this.ranked.start.ranks.length);
    const ranks = Array.from({ length: n }, (_, rank) => rank);
    return this.chosen === null || this.chosen < n ? ranks : [...ranks, this.chosen];
  }

  showHeat() {
    if (this.totals.length <= HEAT_STEPS) return;
    const ranks = this.heatTokens();
    const drawn = ranks.join();
    if (this.drawnHeat !== drawn || this.drawnFor !== this.totals || this.drawnWidth !== this.heat.width) {
      [this.drawnHeat, this.drawnFor, this.drawnWidth] = [drawn, this.totals, this.heat.width];
      const positions = Array.from(this.totals, (_, position) => position);
      const curve = (rank) => [positions, positions.map((position) => this.heated(rank, position))];
      this.heat.draw(Object.fromEntries(ranks.map((rank, index) => [`series-${index}`, curve(rank)])));
      this.heat.legend.replaceChildren(...ranks.map((rank, index) => key(`series-${index}`, this.name(rank))));
    }
    const { temperature } = this.result.settings;
    this.heat.mark(null, temperature > HEAT_MAX ? null : (temperature * HEAT_STEPS) / HEAT_MAX);
  }
}

const key = (name, textContent) => element("bdi", { className: `key ${name}`, textContent });

// 0, 1, 2 ... then ever further apart, up to the last rank.
function sampledRanks(size) {
  const ranks = [];
  for (let rank = 0; rank < size - 1; rank = Math.max(rank + 1, Math.round(rank * 1.045))) ranks.push(rank);
  return [...ranks, size - 1];
}

function sample(c, points) {
  const weights = weigh(c);
  const end = points.findIndex((rank) => rank >= weights.length);
  const ranks = end < 0 ? points : points.slice(0, end);
  return { probs: ranks.map((rank) => weights[rank] / c.total), sums: ranks.map((rank) => c.sums[rank] / c.total) };
}

function oneTwoFive(size) {
  const ticks = [];
  for (let decade = 1; decade <= size; decade *= 10) ticks.push(decade, 2 * decade, 5 * decade);
  return ticks.filter((n) => n <= size);
}

// Tick values 1, 0.01, ... down to the floor, at most six of them.
function decades(floor) {
  const n = Math.round(-Math.log10(floor));
  const step = Math.ceil(n / 5);
  return Array.from({ length: Math.floor(n / step) + 1 }, (_, i) => {
    const exponent = 2 - i * step; // in percent
    return [10 ** (-i * step), exponent >= -1 ? `${10 ** exponent} %` : `1e${exponent} %`];
  });
}
