// The sampler's chain in the browser: what lmcore.sampling does under its own rules, fast enough for every frame.
//
// lmcore/sampling is the definition; tests hold this file to it. It knows nothing of the page.
// Notation: z logits, w = exp((z - max z) / T) weights, the largest exactly 1, p = w / sum w. All in float64.

import { candidates, countWhile, edited, entropyNats, keepFirst, keepMarked, weigh } from "./candidates.js";

export const OFF = {
  logit_bias: {},
  repetition_penalty: 1,
  frequency_penalty: 0,
  presence_penalty: 0,
  temperature: 1,
  top_n_sigma: 0,
  top_k: 0,
  top_p: 1,
  min_p: 0,
  typical_p: 1,
  epsilon_cutoff: 0,
  eta_cutoff: 0,
};

// ---- The stages: candidates, value, context -> [candidates, note] ---------------------------------------------------
// context: {ids, rankOf, size, counts}, counts a Map id -> how often the token was seen.

const addToSeen = (amountOf) => (c, value, { ids, rankOf, counts }) => {
  const changes = new Map();
  for (const [id, count] of counts) changes.set(rankOf[id], (z) => z - amountOf(value, count));
  return [edited(c, changes, ids), counts.size ? null : { kind: "nothing_seen" }];
};

const STAGE = {
  logit_bias(c, bias, { ids, rankOf, size }) {
    const changes = new Map();
    for (const [id, amount] of Object.entries(bias)) if (id < size) changes.set(rankOf[id], (z) => z + amount);
    return [edited(c, changes, ids), null];
  },

  repetition_penalty(c, r, { ids, rankOf, counts }) {
    const changes = new Map();
    for (const id of counts.keys()) changes.set(rankOf[id], (z) => (z > 0 ? z / r : z * r));
    return [edited(c, changes, ids), counts.size ? null : { kind: "nothing_seen" }];
  },

  frequency_penalty: addToSeen((value, count) => value * count),

  presence_penalty: addToSeen((value) => value),

  temperature(c, t) {
    if (t > 0) return [candidates(c.ranks, c.logits, c.byRank, c.temperature * t), null];
    const count = countWhile(c, (i) => c.logits[i] === c.logits[0]);
    return [keepFirst(c, 1), { kind: count > 1 ? "greedy_tie" : "greedy", count }];
  },

  top_n_sigma(c, n) {
    const { logits } = c;
    let mean = 0;
    for (let i = 0; i < logits.length; i++) mean += logits[i];
    mean /= logits.length;
    let variance = 0;
    for (let i = 0; i < logits.length; i++) variance += (logits[i] - mean) ** 2;
    const least = logits[0] - n * Math.sqrt(variance / logits.length);
    return [keepFirst(c, countWhile(c, (i) => logits[i] >= least)), null];
  },

  top_k(c, k, { size }) {
    return [keepFirst(c, Math.min(k, c.ranks.length)), k > size ? { kind: "clamped", k, size } : null];
  },

  top_p(c, p) {
    const weights = weigh(c);
    const last = weights.length - 1;
    let i = 0;
    for (let sum = weights[0]; sum / c.total < p && i < last; ) sum += weights[++i]; // the crossing token stays
    return [keepFirst(c, i + 1), p === 0 ? { kind: "top_p_zero" } : null];
  },

  min_p(c, m) {
    const weights = weigh(c);
    return [keepFirst(c, countWhile(c, (i) => weights[i] >= m)), null];
  },

  typical_p(c, mass) {
    return [keepTypical(c, mass), null];
  },

  epsilon_cutoff(c, epsilon) {
    return atLeast(c, epsilon);
  },

  eta_cutoff(c, epsilon) {
    return atLeast(c, Math.min(epsilon, Math.sqrt(epsilon) * Math.exp(-entropyNats(c))));
  },
};

function atLeast(c, cutoff) {
  const weights = weigh(c);
  const count = countWhile(c, (i) => weights[i] / c.total >= cutoff);
  if (count > 0) return [keepFirst(c, count), null];
  return [keepFirst(c, countWhile(c, (i) => c.logits[i] === c.logits[0])), { kind: "one_kept" }];
}

// Keep the tokens whose surprisal is nearest to the entropy, until they add up to the mass. They enter from where the
// surprisal meets the entropy outwards; on the left in runs of equal logits, as of equals the lower id enters first.
function keepTypical(c, mass) {
  const weights = weigh(c);
  const { logits, temperature, total } = c;
  const n = logits.length;
  const entropy = entropyNats(c);
  const distance = (i) => Math.abs(Math.log(total) - (logits[i] - logits[0]) / temperature - entropy);
  let right = countWhile(c, (i) => Math.log(total) - (logits[i] - logits[0]) / temperature < entropy);
  let runStart = right; // everything before it waits on the left
  let left = right; // the next to enter from the left; left === runEnd when the run is used up
  let runEnd = right;
  const marks = new Uint8Array(n);
  let count = 0;
  let sum = 0;
  while (count === 0 || (sum / total < mass && count < n)) {
    if (left === runEnd && runStart > 0) {
      runEnd = runStart;
      while (runStart > 0 && logits[runStart - 1] === logits[runEnd - 1]) runStart--;
      left = runStart;
    }
    const leftDistance = left < runEnd ? distance(left) : Infinity;
    const rightDistance = right < n ? distance(right) : Infinity;
    const position = leftDistance <= rightDistance ? left++ : right++;
    marks[position] = 1;
    sum += weights[position];
    count++;
  }
  return keepMarked(c, marks, count);
}

// ---- The chain ------------------------------------------------------------------------------------------------------

// Run the active stages of `settings.order`; a stage is active when its value is not its OFF value.
//
// ranked: from rankVocabulary. settings: {order, temperature, top_k, ...}. history: ids seen before this position.
// previous: an earlier result for the same ranked and history; the steps in front of the first change are taken over.
// Returns {settings, steps, start, final, fate}; a step is {name, value, before, after, kept, removedMass, note}.
// fate, by rank: the index of the step that removed the token; -1 it can be drawn; -2 it was impossible at the start.
export function reshape(ranked, settings, history = [], previous = null) {
  const counts = new Map();
  for (const id of history) counts.set(id, (counts.get(id) ?? 0) + 1);
  const context = { ids: ranked.ids, rankOf: ranked.rankOf, size: ranked.size, counts };
  const active = settings.order.filter((name) => isActive(name, settings[name]));
  const steps = [];
  let current = ranked.start;
  for (const [index, name] of active.entries()) {
    const value = settings[name];
    const old = previous?.ranked === ranked && previous.history === history ? previous.steps[index] : undefined;
    let step = old;
    if (!(old && old.before === current && old.name === name && same(old.value, value))) {
      const [after, note] = STAGE[name](current, value, context);
      step = { name, value, before: current, after, kept: after.ranks.length, removedMass: 0, note };
      step.removedMass = removedMass(step);
    }
    steps.push(step);
    current = step.after;
  }
  return { ranked, history, settings, steps, start: ranked.start, final: current, fate: fates(ranked, steps) };
}

export function isActive(name, value) {
  return name === "logit_bias" ? Object.keys(value ?? {}).length > 0 : value !== OFF[name] && value !== null;
}

function same(a, b) {
  return a === b || (typeof a === "object" && JSON.stringify(a) === JSON.stringify(b));
}

// Tokens that were in play before the step and are not after it.
function removedBy(step, visit) {
  const { before, after } = step;
  const prefix = after.ranks.buffer === before.ranks.buffer;
  if (prefix) {
    for (let i = after.ranks.length; i < before.ranks.length; i++) visit(before.ranks[i], i);
  } else if (after.ranks.length < before.ranks.length) {
    const stays = new Uint8Array(after.byRank.length);
    for (const rank of after.ranks) stays[rank] = 1;
    for (let i = 0; i < before.ranks.length; i++) if (!stays[before.ranks[i]]) visit(before.ranks[i], i);
  }
}

// Share of the distribution that entered the step, from 0 to 1.
function removedMass(step) {
  if (step.kept === step.before.ranks.length) return 0;
  const weights = weigh(step.before);
  let sum = 0;
  removedBy(step, (_rank, i) => (sum += weights[i]));
  return sum / step.before.total;
}

function fates(ranked, steps) {
  const fate = new Int8Array(ranked.size).fill(-1);
  fate.fill(-2, ranked.start.ranks.length);
  steps.forEach((step, index) => removedBy(step, (rank) => (fate[rank] = index)));
  return fate;
}

// ---- Measures -------------------------------------------------------------------------------------------------------

// Probability at temperature 1 of everything that can no longer be drawn.
export function totalRemovedMass(result) {
  const { start, final } = result;
  if (final.ranks.length === start.ranks.length) return 0;
  const weights = weigh(start);
  let left = 0;
  for (let i = 0; i < final.ranks.length; i++) left += weights[final.ranks[i]];
  return Math.max(1 - left / start.total, 0);
}

// Probabilities of the whole vocabulary, by id, 0 where a token was removed.
export function probsById(result) {
  const { ranked, final } = result;
  const weights = weigh(final);
  const probs = new Float64Array(ranked.size);
  for (let i = 0; i < weights.length; i++) probs[ranked.ids[final.ranks[i]]] = weights[i] / final.total;
  return probs;
}
