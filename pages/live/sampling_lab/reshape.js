// The sampler's chain in the browser: what lmcore.sampling does, fast enough for every frame.
//
// lmcore/sampling is the definition; tests hold this file to it, under every engine's rules. It knows nothing of the page.
// Notation: z logits, w = exp((z - max z) / T) weights, the largest exactly 1, p = w / sum w. All in float64.

import { countWhile, edited, entropyNats, heated, keepFirst, markRanked, weigh } from "./candidates.js";
import { aroundTypical, fitWithin, untilMass } from "./nucleus.js";

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

// lmcore's own rules at the boundaries, as the defaults of its Rules: exact counts, lower ids first.
export const RULES = {
  top_k_ties: "lowest",
  top_k_beyond_vocab: "clamped",
  top_p_boundary: "crossing kept",
  top_p_ties: "lowest",
  typical_boundary: "reach",
  typical_ties: "lowest",
  typical_score: "surprisal",
  additive_penalties_count: "all",
  greedy_below: 0,
  zero_temperature: "greedy",
};

// ---- The stages: candidates, value, context -> [candidates, note] ---------------------------------------------------
// context: {ids, rankOf, size, rules, seen, seenAdditively, room}; seen and seenAdditively: Maps id -> how often the token
// was seen; room: see heated.

const addToSeen = (amountOf) => (c, value, { ids, rankOf, seenAdditively: seen }) => {
  const changes = new Map();
  for (const [id, count] of seen) changes.set(rankOf[id], (z) => z - amountOf(value, count));
  return [edited(c, changes, ids), seen.size ? null : { kind: "nothing_seen" }];
};

const STAGE = {
  logit_bias(c, bias, { ids, rankOf, size }) {
    const changes = new Map();
    for (const [id, amount] of Object.entries(bias)) if (id < size) changes.set(rankOf[id], (z) => z + toAmount(amount));
    return [edited(c, changes, ids), null];
  },

  repetition_penalty(c, r, { ids, rankOf, seen }) {
    const changes = new Map();
    for (const id of seen.keys()) changes.set(rankOf[id], (z) => (z > 0 ? z / r : z * r));
    return [edited(c, changes, ids), seen.size ? null : { kind: "nothing_seen" }];
  },

  frequency_penalty: addToSeen((value, count) => value * count),

  presence_penalty: addToSeen((value) => value),

  temperature(c, t, { rules, room }) {
    if (t === 0 && rules.zero_temperature === "error") throw new RangeError("zero_temperature");
    if (t > 0 && t >= rules.greedy_below) return [heated(c, t, room), null];
    const count = countWhile(c, (i) => c.logits[i] === c.logits[0]);
    return [keepFirst(c, 1), { kind: count > 1 ? "greedy_tie" : "greedy", count, t }];
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

  top_k(c, k, { size, rules }) {
    if (k >= size && rules.top_k_beyond_vocab === "off") return [c, k > size ? { kind: "beyond", k } : null];
    const ranked = markRanked(c);
    if (k > size) return [ranked, { kind: "clamped", k }];
    if (k >= c.ranks.length) return [ranked, null];
    const { logits } = c;
    const n = rules.top_k_ties === "all" ? countWhile(c, (i) => logits[i] >= logits[k - 1]) : k;
    return [keepFirst(ranked, n), n > k ? { kind: "ties_kept", k, count: n - k } : null];
  },

  top_p(c, p, context) {
    const note = p === 0 ? { kind: "top_p_zero" } : null;
    if (context.rules.top_p_boundary === "crossing dropped") return [fitWithin(c, p, context), note];
    return [untilMass(c, p, context.rules), note];
  },

  min_p(c, m) {
    const weights = weigh(c);
    return [keepFirst(c, countWhile(c, (i) => weights[i] >= m)), null];
  },

  typical_p(c, mass, { rules }) {
    return [aroundTypical(c, mass, rules), null];
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

// A ban travels as text: JSON has no infinity.
export const toAmount = (amount) => (amount === "-inf" ? -Infinity : amount);

// ---- The chain ------------------------------------------------------------------------------------------------------

// Run the active stages of `settings.order`; a stage is active when its value is not its OFF value.
//
// ranked: from rankVocabulary. settings: {order, temperature, top_k, ...}, with "rules" and "penalty_last_n" where they
// are not lmcore's own and all. history: {prompt, generated}, ids seen before this position. previous: an earlier result
// for the same ranked, history and rules; the steps in front of the first change are taken over, and the numbers of the
// result that came before `previous` are written over.
// Returns {settings, steps, start, final, fate}; a step is {name, value, before, after, kept, removedMass, note}.
// fate, by rank: the index of the step that removed the token; -1 it can be drawn; -2 it was impossible at the start.
export function reshape(ranked, settings, history = NOTHING, previous = null) {
  const { rules = RULES, penalty_last_n: last } = settings;
  const everything = [...history.prompt, ...history.generated];
  const seen = counted(everything, last);
  const additive = rules.additive_penalties_count === "generated";
  const seenAdditively = additive ? counted(history.generated, last) : seen;
  const isAlike =
    previous?.ranked === ranked &&
    previous.history === history &&
    (previous.settings.rules ?? RULES) === rules &&
    previous.settings.penalty_last_n === last;
  const room = isAlike ? previous.spare : null;
  const context = { ids: ranked.ids, rankOf: ranked.rankOf, size: ranked.size, rules, seen, seenAdditively, room };
  const active = settings.order.filter((name) => isActive(name, settings[name]));
  const steps = [];
  let current = ranked.start;
  for (const [index, name] of active.entries()) {
    const value = settings[name];
    const old = isAlike ? previous.steps[index] : undefined;
    let step = old;
    if (!(old && old.before === current && old.name === name && same(old.value, value))) {
      const [after, note] = STAGE[name](current, value, context);
      step = { name, value, before: current, after, kept: after.ranks.length, removedMass: 0, note };
      step.removedMass = removedMass(step);
    }
    steps.push(step);
    current = step.after;
  }
  const fate = fates(ranked, steps);
  const spare = isAlike ? left(previous, steps) : null;
  return { ranked, history, settings, steps, start: ranked.start, final: current, fate, seen, seenAdditively, spare };
}

// The numbers after a temperature that the next result may write over: nothing but the previous result reads them.
function left({ steps: old, spare }, steps) {
  const after = (all) => all.find(({ name }) => name === "temperature")?.after;
  const [was, is] = [after(old), after(steps)];
  return was?.room !== undefined && was.weights && was !== is ? { weights: was.weights, sums: was.sums } : spare;
}

const NOTHING = { prompt: [], generated: [] };

// Map id -> how often it came among the latest; all of them where `last` is null.
function counted(ids, last) {
  const counts = new Map();
  for (const id of last == null ? ids : ids.slice(Math.max(ids.length - last, 0))) {
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}

export function isActive(name, value) {
  return name === "logit_bias" ? Object.keys(value ?? {}).length > 0 : value !== OFF[name] && value !== null;
}

function same(a, b) {
  return a === b || (typeof a === "object" && JSON.stringify(a) === JSON.stringify(b));
}

// Tokens that were in play before the step and are not after it.
function removedBy({ before, after }, visit) {
  if (areFirst(after, before)) {
    for (let i = after.ranks.length; i < before.ranks.length; i++) visit(before.ranks[i], i);
  } else if (after.ranks.length < before.ranks.length) {
    const stays = new Uint8Array(after.byRank.length);
    for (const rank of after.ranks) stays[rank] = 1;
    for (let i = 0; i < before.ranks.length; i++) if (!stays[before.ranks[i]]) visit(before.ranks[i], i);
  }
}

// Are some candidates the first ones of others, in the same order?
const areFirst = (some, others) => some.ranks.buffer === others.ranks.buffer;

// Share of the distribution that entered the step, from 0 to 1.
function removedMass(step) {
  const { before, after, kept } = step;
  if (kept === before.ranks.length) return 0;
  const weights = weigh(before);
  const share = before.sums[kept - 1] / before.total;
  if (areFirst(after, before) && share < 0.999) return 1 - share; // beyond that its last digits would be lost
  let sum = 0;
  removedBy(step, (_rank, i) => (sum += weights[i]));
  return sum / before.total;
}

function fates({ size, start }, steps) {
  const fate = new Int8Array(size).fill(-1);
  fate.fill(-2, start.ranks.length);
  for (const [index, step] of steps.entries()) {
    const { before, after } = step;
    // At the start the i-th candidate is the one of rank i.
    if (areFirst(before, start) && areFirst(after, start)) fate.fill(index, after.ranks.length, before.ranks.length);
    else removedBy(step, (rank) => (fate[rank] = index));
  }
  return fate;
}

// ---- Measures -------------------------------------------------------------------------------------------------------

// Probability at temperature 1 of everything that can no longer be drawn.
export function totalRemovedMass(result) {
  const { start, final } = result;
  if (final.ranks.length === start.ranks.length) return 0;
  const weights = weigh(start);
  let left = 0;
  if (areFirst(final, start)) left = start.sums[final.ranks.length - 1];
  else for (let i = 0; i < final.ranks.length; i++) left += weights[final.ranks[i]];
  return Math.max(1 - left / start.total, 0);
}

// {weights, total}: weights by rank, 0 or beyond the end where a token was removed, and their sum.
export function weightsByRank({ ranked, final }) {
  let weights = weigh(final);
  if (!areFirst(final, ranked.start)) {
    const scattered = new Float64Array(ranked.size);
    for (let i = 0; i < weights.length; i++) scattered[final.ranks[i]] = weights[i];
    weights = scattered;
  }
  return { weights, total: final.total };
}

// Probabilities of the whole vocabulary, by id, 0 where a token was removed.
export function probsById(result) {
  const { ranked, final } = result;
  const weights = weigh(final);
  const probs = new Float64Array(ranked.size);
  for (let i = 0; i < weights.length; i++) probs[ranked.ids[final.ranks[i]]] = weights[i] / final.total;
  return probs;
}
