// The sampler's chain in the browser: what lmcore.sampling does, fast enough for every frame.
//
// lmcore/sampling is the definition; tests hold this file to it, under every engine's rules. It knows nothing of the page.
// Notation: z logits, w = exp((z - max z) / T) weights, the largest exactly 1, p = w / sum w. All in float64.

import { candidates, countWhile, edited, entropyNats, heated, keepFirst, markRanked, relogit, weigh } from "./candidates.js";
import { OFF, RULES, STAGES } from "./declared.js";
import { aroundTypical, fitWithin, untilMass } from "./nucleus.js";

export { OFF, RULES, STAGES };

// ---- The stages: candidates, value, context -> [candidates, note] ---------------------------------------------------
// value: of the stage's first field; the others are in context.settings. context: {ids, rankOf, size, rules, settings,
// entered, tolerance, seen, seenAdditively, room}; entered: the candidates that entered each stage before; tolerance: see
// Rules.boundary_ulps; seen and seenAdditively: Maps id -> how often the token was seen; room: see heated.

const addToSeen = (amountOf) => (c, value, { ids, rankOf, seenAdditively: seen }) => {
  const changes = new Map();
  for (const [id, count] of seen) changes.set(rankOf[id], (z) => z - amountOf(value, count));
  return [edited(c, changes, ids), seen.size ? null : { kind: "nothing_seen" }];
};

export const KERNELS = {
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

  smoothing_factor(c, factor, { settings, ids }) {
    const curve = settings.smoothing_curve ?? 1;
    const largest = c.logits[0] / c.temperature;
    const square = ((3 - curve) / 2) * factor;
    const cube = ((curve - 1) / 2) * factor;
    return [relogit(c, (z) => largest - square * (z - largest) ** 2 + cube * (z - largest) ** 3, ids), null];
  },

  // Over the 100 most probable tokens, by falling probability, as transformers has it.
  top_h(c, h) {
    const n = Math.min(c.ranks.length, 100);
    const weights = weigh(c);
    const total = c.sums[n - 1];
    const terms = Array.from({ length: n }, (_, i) => {
      const p = weights[i] / total;
      return p > 0 ? -p * Math.log(p) : 0;
    });
    const most = h * terms.reduce((sum, term) => sum + term, 0);
    let sum = 0;
    let count = 0;
    while (count < n && (sum += terms[count]) <= most) count++;
    return [keepFirst(c, Math.max(count, 1)), null];
  },

  top_a(c, a, { tolerance }) {
    weigh(c);
    return [atLeast(c, a / c.total ** 2, tolerance)[0], null]; // the largest weight is 1
  },

  min_k(c, tau) {
    const { logits, temperature } = c;
    const n = logits.length;
    const width = (logits[0] - logits[n - 1]) / temperature;
    if (n === 1 || width === 0) return [c, null];
    let best = 0;
    let widest = -1;
    for (let i = 0; i + 1 < n; i++) {
      const gap = (logits[i] - logits[i + 1]) / temperature / (width * (i + 1));
      if (gap > widest) [widest, best] = [gap, i];
    }
    const k = Math.min(Math.max(best + 1, Math.floor(tau / width)), n);
    return [keepFirst(c, countWhile(c, (i) => logits[i] >= logits[k - 1])), null];
  },

  p_less(c, form, { settings, size, tolerance }) {
    if (c.ranks.length === 1) return [c, null];
    const order = form === 1 ? settings.p_less_order ?? 2 : 2;
    const weights = weigh(c);
    let sum = 0;
    for (let i = 0; i < weights.length; i++) sum += (weights[i] / c.total) ** order;
    let cutoff = sum ** (1 / (order - 1));
    if (form === 2) cutoff = (size * cutoff - 1) / (size - 1);
    return atLeast(c, cutoff, tolerance);
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

function atLeast(c, cutoff, tolerance) {
  const weights = weigh(c);
  const count = countWhile(c, (i) => weights[i] / c.total >= cutoff * (1 - tolerance));
  if (count > 0) return [keepFirst(c, count), null];
  return [keepFirst(c, countWhile(c, (i) => c.logits[i] === c.logits[0])), { kind: "one_kept" }];
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
// Returns {settings, steps, start, final, fate}; a step is {name, value, before, after, kept, removedMass, note}.
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
  const context = { ids, rankOf, size, rules, settings, entered, tolerance, seen, seenAdditively, room };
  const active = settings.order.filter((name) => isActive(name, settings));
  if (active.some((name) => !(name in KERNELS))) throw new RangeError("no_kernel");
  const steps = [];
  let current = ranked.start;
  for (const [index, name] of active.entries()) {
    const values = STAGES[name].fields.map((field) => settings[field]);
    const value = values[0] ?? OFF[STAGES[name].fields[0]];
    entered[name] = current;
    const old = isAlike ? previous.steps[index] : undefined;
    let step = old;
    if (!(old && old.before === current && old.name === name && same(old.values, values) && !isJoint(name, rules))) {
      const [after, note] = KERNELS[name](current, value, context);
      step = { name, value, values, before: current, after, kept: after.ranks.length, removedMass: 0, note };
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
