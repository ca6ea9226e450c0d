// The sampler's chain in the browser: what lmcore.sampling does, fast enough for every frame.
//
// lmcore/sampling is the definition; tests hold this file to it, under every engine's rules. It knows nothing of the page.
// Notation: z logits, w = exp((z - max z) / T) weights, the largest exactly 1, p = w / sum w. All in float64.

import { atLeast, candidates, countWhile, edited, entropyNats, heated, keepFirst, markRanked, weigh } from "./candidates.js";
import { OFF, RULES, STAGES } from "./declared.js";
import { aroundTypical, fitWithin, untilMass } from "./nucleus.js";
import { SHAPES } from "./shapes.js";
import { STEERING, mixture } from "./steering.js";

export { OFF, RULES, STAGES };

// ---- The stages: candidates, value, context -> [candidates, note, probability that it acts] -------------------------
// value: of the stage's first field; the others are in context.settings. context: {ids, rankOf, size, rules, settings,
// entered, tolerance, seen, seenAdditively, room}; entered: the candidates that entered each stage before; tolerance: see
// Rules.boundary_ulps; seen and seenAdditively: Maps id -> how often the token was seen; text: the ids before; room: see
// heated. A probability is returned by a stage of chance alone; with the rest of it the candidates stay as they are.

const addToSeen = (amountOf) => (c, value, { ids, rankOf, seenAdditively: seen }) => {
  const changes = new Map();
  for (const [id, count] of seen) changes.set(rankOf[id], (z) => z - amountOf(value, count));
  return [edited(c, changes, ids), seen.size ? null : { kind: "nothing_seen" }];
};

export const KERNELS = {
  ...SHAPES,
  ...STEERING,

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

  temperature(c, value, { rules, room, settings }) {
    let t = value;
    let note = null;
    if (settings.dynatemp_range > 0) {
      if (c.ranks.length === 1) return [c, null];
      t = dynamic(c, t, settings.dynatemp_range, settings.dynatemp_exponent ?? 1);
      note = { kind: "dynamic", t: t.toFixed(4) };
    }
    if (t === 0 && rules.zero_temperature === "error") throw new RangeError("zero_temperature");
    if (t > 0 && t >= rules.greedy_below) return [heated(c, Math.max(t, rules.least_temperature), room), note];
    const count = countWhile(c, (i) => c.logits[i] === c.logits[0]);
    return [keepFirst(c, 1), { kind: count > 1 ? "greedy_tie" : "greedy", count, t }];
  },

  top_n_sigma(c, n, { rules }) {
    const { logits } = c;
    const divisor = rules.top_n_sigma_divisor === "n - 1" && logits.length > 1 ? logits.length - 1 : logits.length;
    let mean = 0;
    for (let i = 0; i < logits.length; i++) mean += logits[i];
    mean /= logits.length;
    let variance = 0;
    for (let i = 0; i < logits.length; i++) variance += (logits[i] - mean) ** 2;
    const least = logits[0] - n * Math.sqrt(variance / divisor);
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
    const { rules, settings, entered, tolerance } = context;
    if (rules.top_p_boundary === "crossing dropped") return [fitWithin(c, p, context), note];
    const { top_p_joint: joint } = rules;
    const isAlone = joint === "no" || (joint === "without min_p" && settings.min_p > 0);
    if (isAlone || !entered.top_k) return [untilMass(c, p, rules, tolerance), note];
    // Over what entered top-k; both keep the first ones.
    const count = untilMass(entered.top_k, p, rules, tolerance).ranks.length;
    return [keepFirst(c, Math.min(count, c.ranks.length)), note];
  },

  min_p(c, m, { tolerance }) {
    const weights = weigh(c);
    return [keepFirst(c, countWhile(c, (i) => weights[i] >= m * (1 - tolerance))), null];
  },

  typical_p(c, mass, { rules, tolerance }) {
    return [aroundTypical(c, mass, rules, tolerance), null];
  },

  epsilon_cutoff(c, epsilon, { tolerance }) {
    return atLeast(c, epsilon, tolerance);
  },

  eta_cutoff(c, epsilon, { tolerance }) {
    return atLeast(c, Math.min(epsilon, Math.sqrt(epsilon) * Math.exp(-entropyNats(c))), tolerance);
  },
};

// Between T - reach and T + reach, by the share of the largest possible entropy.
function dynamic(c, middle, reach, exponent) {
  const low = Math.max(middle - reach, 0);
  const share = Math.min(Math.max(entropyNats(c) / Math.log(c.ranks.length), 0), 1);
  return low + (middle + reach - low) * share ** exponent;
}

// A ban travels as text: JSON has no infinity.
export const toAmount = (amount) => (amount === "-inf" ? -Infinity : amount);

// ---- The chain ------------------------------------------------------------------------------------------------------

// Run the active stages of `settings.order`; a stage is active when one of its switches is not at its OFF value. Each must
// be one of KERNELS.
//
// ranked: from rankVocabulary. settings: {order, temperature, top_k, ...}, with "rules" and "penalty_last_n" where they
// are not lmcore's own and all. history: {prompt, generated}, ids seen before this position. previous: an earlier result
// for the same ranked, history and rules; the steps in front of the first change are taken over, and the numbers of the
// result that came before `previous` are written over.
// Returns {settings, steps, ways, start, final, fate}; a step is {name, value, before, after, kept, removedMass, note},
// of the way in which chance acts; a way is {weight, final}, and `final` the mixture of them.
// fate, by rank: the index of the step that removed the token; -1 it can be drawn; -2 it was impossible at the start.
export function reshape(ranked, settings, history = NOTHING, previous = null) {
  const { rules = RULES, penalty_last_n: last } = settings;
  const everything = [...history.prompt, ...history.generated];
  const everySeen = counted(everything, last);
  const generated = counted(history.generated, last);
  const seenAdditively = rules.additive_penalties_count === "generated" ? generated : everySeen;
  const seen = rules.repetition_penalty_counts === "generated" ? generated : everySeen;
  const isAlike =
    previous?.ranked === ranked &&
    previous.history === history &&
    (previous.settings.rules ?? RULES) === rules &&
    previous.settings.penalty_last_n === last;
  const room = isAlike ? previous.spare : null;
  const { ids, rankOf, size } = ranked;
  const entered = {};
  const tolerance = rules.boundary_ulps * ranked.ulp;
  const context = { ids, rankOf, size, rules, settings, entered, tolerance, seen, seenAdditively, text: everything, room };
  const active = settings.order.filter((name) => isActive(name, settings));
  if (active.some((name) => !(name in KERNELS))) throw new RangeError("no_kernel");
  const steps = [];
  const ways = [{ weight: 1, from: null }]; // the other ones begin where chance left the candidates as they were
  let current = ranked.start;
  for (const [index, name] of active.entries()) {
    const values = STAGES[name].fields.map((field) => settings[field]);
    const value = values[0] ?? OFF[STAGES[name].fields[0]];
    entered[name] = current;
    const old = isAlike ? previous.steps[index] : undefined;
    let step = old;
    if (!(old && old.before === current && old.name === name && same(old.values, values) && !isJoint(name, rules))) {
      const [after, note, chance = 1] = KERNELS[name](current, value, context);
      step = { name, value, values, before: current, after, kept: after.ranks.length, removedMass: 0, note, chance };
      step.removedMass = removedMass(step);
    }
    if (step.chance < 1) {
      ways.push({ weight: ways[0].weight * (1 - step.chance), from: index + 1, final: current });
      ways[0].weight *= step.chance;
    }
    steps.push(step);
    current = step.after;
  }
  ways[0].final = current;
  for (const way of ways.slice(1)) {
    for (const name of active.slice(way.from)) {
      const value = settings[STAGES[name].fields[0]] ?? OFF[STAGES[name].fields[0]];
      [way.final] = KERNELS[name](way.final, value, { ...context, room: null });
    }
  }
  const final = ways.length === 1 ? current : mixture(ways, size, ids);
  const fate = fates(ranked, steps);
  if (ways.length > 1) for (let i = 0; i < final.ranks.length; i++) fate[final.ranks[i]] = -1; // what any way can draw
  const spare = isAlike ? left(previous, steps) : null;
  return { ranked, history, settings, steps, ways, start: ranked.start, final, fate, seen, seenAdditively, spare };
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

// Is one of a stage's switches away from its value that means off?
export function isActive(name, settings) {
  return STAGES[name].switches.some((field) => !isOff(field, settings[field]));
}

export function isOff(field, value) {
  if (value === undefined || value === null) return true;
  return typeof value === "object" ? Object.keys(value).length === 0 : value === OFF[field];
}

// Does a stage depend on more than the candidates that enter it?
const isJoint = (name, rules) => name === "top_p" && rules.top_p_joint !== "no";

const same = (some, others) => some.every((value, index) => isSame(value, others[index]));

function isSame(a, b) {
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
const areFirst = (some, others) =>
  some.ranks.buffer === others.ranks.buffer && some.ranks.byteOffset === others.ranks.byteOffset;

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

// ---- A result that lmcore computed ----------------------------------------------------------------------------------

// bytes: as pages/live/sampling_lab packs them. Returns what `reshape` returns; its steps have no candidates.
export function unpacked(bytes, ranked, settings, history) {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const start = 8 + Number(view.getBigUint64(0, true));
  const { steps, ways } = JSON.parse(new TextDecoder().decode(bytes.subarray(8, start)));
  const { size, ids } = ranked;
  const probs = new Float64Array(bytes.slice(start, start + 8 * size).buffer);
  const fates = new Int8Array(bytes.slice(start + 8 * size).buffer);
  const byRank = Float64Array.from(ids, (id) => Math.log(probs[id]));
  const ranks = Int32Array.from(ids.keys()).filter((rank) => probs[ids[rank]] > 0);
  ranks.sort((a, b) => byRank[b] - byRank[a] || ids[a] - ids[b]);
  const final = candidates(ranks, Float64Array.from(ranks, (rank) => byRank[rank]), byRank, 1);
  const told = steps.map((step) => ({ ...step, before: { ranks: { length: step.before } }, isTold: true }));
  const fate = Int8Array.from(ids, (id) => fates[id]);
  const seen = new Map();
  return { ranked, history, settings, steps: told, ways, start: ranked.start, final, fate, seen, seenAdditively: seen };
}
