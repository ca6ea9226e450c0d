// Stages that look further than one distribution: DRY at the text, XTC at a coin, mirostat and adaptive-p at what was
// drawn before; here each is at a text's beginning. The counterpart of dry.py, chance.py and memory.py of
// lmcore/sampling/stages.

import { along, candidates, countWhile, edited, keepFirst, weigh } from "./candidates.js";

const LARGEST = 88.72; // the logarithm of float32's largest number: llama.cpp keeps the power below it
const FITTED = 100; // tokens that mirostat 1 fits Zipf's law to
const WIDTH = 0.3; // of adaptive-p's hump
const PEAK = 5;

export const STEERING = {
  dry(c, multiplier, { settings, text, ids, rankOf }) {
    const { dry_base: base = 1.75, dry_allowed_length: allowed = 2, dry_penalty_last_n: last } = settings;
    const latest = last ? text.slice(Math.max(text.length - last, 0)) : text;
    const found = matches(latest, allowed, new Set(settings.dry_sequence_breakers ?? []));
    if (!found.size) return [c, { kind: "no_match" }];
    const most = base > 1 ? LARGEST / Math.log(base) : Infinity;
    const changes = new Map();
    for (const [id, length] of found) {
      changes.set(rankOf[id], (z) => z - multiplier * base ** Math.min(length - allowed, most));
    }
    return [edited(c, changes, ids), { kind: "repeats", length: Math.max(...found.values()), count: found.size }];
  },

  // The third of what is returned is the probability that it acts; else the candidates stay as they were.
  xtc(c, probability, { settings, tolerance }) {
    const weights = weigh(c);
    const least = (settings.xtc_threshold ?? 0.1) * (1 - tolerance);
    const count = countWhile(c, (i) => weights[i] / c.total >= least) - 1;
    if (count < 1) return [c, { kind: "too_few" }];
    const left = candidates(c.ranks.subarray(count), c.logits.subarray(count), c.byRank, c.temperature, c.ranked);
    return [left, { kind: "xtc_acts", p: probability, count }, probability];
  },

  mirostat(c, version, { settings, size }) {
    const mu = 2 * (settings.mirostat_tau ?? 5);
    const note = { kind: "mu", t: mu.toFixed(4) };
    if (c.ranks.length === 1) return [c, note];
    const weights = weigh(c);
    const surprise = (i) => -Math.log2(weights[i] / c.total);
    const count = version === 2 ? countWhile(c, (i) => surprise(i) <= mu) : zipfCount(c, mu, size);
    return [keepFirst(c, Math.min(Math.max(count, 1), c.ranks.length)), note];
  },

  // The nearer a probability is to the target, the more. Up to the target the order is the other way round.
  adaptive_p(c, target, { ids }) {
    const aim = Math.min(Math.max(target, 0), 1);
    const weights = weigh(c);
    const n = weights.length;
    const byRank = new Float64Array(c.byRank.length).fill(-Infinity);
    for (let i = 0; i < n; i++) {
      const distance = Math.abs(weights[i] / c.total - aim) / WIDTH;
      byRank[c.ranks[i]] = PEAK - (2 * PEAK * distance * distance) / (1 + distance);
    }
    const above = countWhile(c, (i) => weights[i] / c.total >= aim);
    const ranks = merged([turned(c, above), c.ranks.subarray(above)], byRank, ids);
    return [candidates(ranks, along(ranks, byRank), byRank, 1, c.ranked), { kind: "target", t: aim.toFixed(4) }];
  },
};

// What followed whenever the latest tokens came before: Map id -> how many of them, the longest.
function matches(text, allowed, breakers) {
  const newest = text.slice().reverse();
  const n = newest.length;
  const first = newest.findIndex((id) => breakers.has(id));
  const reach = first < 0 ? n : first;
  const found = new Map();
  if (n <= allowed || reach < allowed) return found;
  for (const [back, common] of commonBeginnings(newest).entries()) {
    const id = newest[back - 1];
    const length = Math.min(common, reach);
    if (back === 0 || length < allowed || breakers.has(id)) continue;
    if (length > (found.get(id) ?? -1)) found.set(id, length);
  }
  return found;
}

// How far items from i on are equal to items from the first on, for each i (the Z-function).
function commonBeginnings(items) {
  const found = new Int32Array(items.length);
  found[0] = items.length;
  for (let i = 1, start = 0, end = 0; i < items.length; i++) {
    let size = i < end ? Math.min(end - i, found[i - start]) : 0;
    while (i + size < items.length && items[size] === items[i + size]) size++;
    found[i] = size;
    if (i + size > end) [start, end] = [i, i + size];
  }
  return found;
}

// How many tokens to keep for a surprise of mu bits, from the slope of the most probable ones.
function zipfCount(c, mu, size) {
  const weights = weigh(c);
  let across = 0;
  let squares = 0;
  for (let i = 1; i < Math.min(weights.length, FITTED); i++) {
    const step = Math.log((i + 1) / i);
    across += step * Math.log(weights[i - 1] / weights[i]);
    squares += step * step;
  }
  const slope = across / squares;
  if (!Number.isFinite(slope) || slope <= 0) return size; // equal probabilities: every token has the same surprise
  const e = slope - 1;
  const spread = e === 0 ? Math.log(size) : (1 - size ** -e) / e;
  const exponent = (mu * Math.LN2 - Math.log(spread)) / slope;
  return exponent > Math.log(size) ? size : Math.floor(Math.exp(exponent));
}

// The weighted mean of the distributions of two ways, as candidates; what no way can draw is none.
export function mixture(ways, size, ids) {
  const probs = new Float64Array(size);
  const isOfFirst = new Uint8Array(size);
  for (const [number, { weight, final }] of ways.entries()) {
    const weights = weigh(final);
    const scale = weight / final.total;
    for (let i = 0; i < weights.length; i++) {
      probs[final.ranks[i]] += scale * weights[i];
      if (number === 0) isOfFirst[final.ranks[i]] = 1;
    }
  }
  const [first, second] = ways.map(({ final }) => final.ranks);
  const ranks = merged([first, second.filter((rank) => !isOfFirst[rank])], probs, ids);
  let n = ranks.length;
  while (n > 0 && probs[ranks[n - 1]] === 0) n--;
  const kept = ranks.subarray(0, n);
  const logits = new Float64Array(n);
  const byRank = new Float64Array(size).fill(-Infinity);
  for (let i = 0; i < n; i++) byRank[kept[i]] = logits[i] = Math.log(probs[kept[i]]);
  return candidates(kept, logits, byRank, 1);
}

// The first n ranks the other way round, but equal ones by their ids as before.
function turned({ ranks, logits }, n) {
  const found = new Int32Array(n);
  for (let end = n, written = 0; end > 0; ) {
    let start = end - 1;
    while (start > 0 && logits[start - 1] === logits[start]) start--;
    for (let i = start; i < end; i++) found[written++] = ranks[i];
    end = start;
  }
  return found;
}

// Two lists of ranks as one, by falling value: each falls already as a rule, and is sorted where not.
function merged(lists, values, ids) {
  const before = (a, b) => {
    const difference = values[b] - values[a];
    return difference === 0 ? ids[a] - ids[b] : difference;
  };
  const [some, others] = lists.map((list) => {
    for (let i = 1; i < list.length; i++) if (before(list[i - 1], list[i]) > 0) return list.slice().sort(before);
    return list;
  });
  const all = new Int32Array(some.length + others.length);
  let i = 0;
  let j = 0;
  for (let place = 0; place < all.length; place++) {
    const isFirst = j === others.length || (i < some.length && before(some[i], others[j]) <= 0);
    all[place] = isFirst ? some[i++] : others[j++];
  }
  return all;
}
