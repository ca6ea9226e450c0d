// The tokens in play, by falling logit: the vocabulary is sorted once, and no stage has to sort again.
//
// A token is named by its rank: 0 has the largest logit of all, equal logits are ranked by id. Temperature keeps that
// order and nearly every filter cuts off its tail, so most stages take no copy: they look at fewer of the same numbers.

// logits: Float32Array or Float64Array, by id. Returns {size, ids, logits, rankOf, ulp, start}: ids and logits by rank,
// rankOf by id, start the candidates before any stage (tokens at -inf are ranked last and are none).
export function rankVocabulary(logits) {
  const size = logits.length;
  const ids = logits instanceof Float32Array ? sortedIds32(logits) : sortedIds64(logits);
  const sorted = new Float64Array(size);
  const rankOf = new Int32Array(size);
  const ranks = new Int32Array(size);
  for (let rank = 0; rank < size; rank++) {
    sorted[rank] = logits[ids[rank]];
    rankOf[ids[rank]] = rank;
    ranks[rank] = rank;
  }
  let possible = size;
  while (possible > 0 && sorted[possible - 1] === -Infinity) possible--;
  const ulp = logits instanceof Float32Array ? 2 ** -23 : 2 ** -52; // of 1, in the type that the logits came in
  return { size, ids, logits: sorted, rankOf, ulp, start: keepFirst(candidates(ranks, sorted, sorted, 1), possible) };
}

// One native sort of plain numbers: the logit's bits, made to rise as the logit falls, in front of the id.
function sortedIds32(logits) {
  const size = logits.length;
  const bits = new Uint32Array(logits.buffer, logits.byteOffset, size);
  const keys = new Float64Array(size);
  for (let id = 0; id < size; id++) {
    if (logits[id] === 0) {
      keys[id] = 0x7fffffff * 0x200000 + id; // 0 and -0 are equal
      continue;
    }
    const falling = bits[id] & 0x80000000 ? bits[id] : ~bits[id] & 0x7fffffff;
    keys[id] = (falling >>> 0) * 0x200000 + id; // 32 bits and 21 bits: exact in a float64
  }
  keys.sort();
  const ids = new Int32Array(size);
  for (let rank = 0; rank < size; rank++) ids[rank] = keys[rank] % 0x200000;
  return ids;
}

function sortedIds64(logits) {
  const ids = Int32Array.from(logits, (_, id) => id);
  return ids.sort((a, b) => logits[b] - logits[a] || a - b);
}

// ---- Candidates: the tokens still in play, by falling logit ---------------------------------------------------------

// ranks and logits run alongside; byRank has the logit at this point of every token of the vocabulary.
// ranked: a top-k has put them in order of probability, which exllamav2's top-p depends on.
export function candidates(ranks, logits, byRank, temperature, ranked = false) {
  return { ranks, logits, byRank, temperature, ranked, weights: null, sums: null, total: NaN };
}

// The weights, computed when first asked for in one pass, with their running sums; the last of these is the total.
export function weigh(c) {
  if (!c.weights) {
    const { logits, temperature, room } = c;
    const n = logits.length;
    const isLarge = room?.weights.length >= n;
    const weights = isLarge ? room.weights.subarray(0, n) : new Float64Array(n);
    const sums = isLarge ? room.sums.subarray(0, n) : new Float64Array(n);
    const largest = logits[0];
    let sum = 0;
    let i = 0;
    for (let weight = 1; i < n && weight > 0; i++) {
      sum += weights[i] = weight = Math.exp((logits[i] - largest) / temperature);
      sums[i] = sum;
    }
    weights.fill(0, i); // what follows is less still
    sums.fill(sum, i);
    Object.assign(c, { weights, sums, total: sum });
  }
  return c.weights;
}

export function keepFirst(c, n) {
  if (n === c.ranks.length) return c;
  const kept = candidates(c.ranks.subarray(0, n), c.logits.subarray(0, n), c.byRank, c.temperature, c.ranked);
  if (c.weights) {
    const [weights, sums] = [c.weights.subarray(0, n), c.sums.subarray(0, n)];
    Object.assign(kept, { weights, sums, total: sums[n - 1] ?? 0 });
  }
  return kept;
}

// room: {weights, sums} that nothing reads any more, written over; two new arrays of the vocabulary's size, a few
// megabytes, would take longer than all the sums.
export function heated(c, t, room) {
  return { ...candidates(c.ranks, c.logits, c.byRank, c.temperature * t, c.ranked), room };
}

export const markRanked = (c) => (c.ranked ? c : { ...c, ranked: true });

// n of c, those with a mark; marks may end before c does.
export function keepMarked(c, marks, n) {
  const ranks = new Int32Array(n);
  const logits = new Float64Array(n);
  let written = 0;
  for (let i = 0; i < marks.length; i++) {
    if (!marks[i]) continue;
    ranks[written] = c.ranks[i];
    logits[written++] = c.logits[i];
  }
  return candidates(ranks, logits, c.byRank, c.temperature, c.ranked);
}

// How many of c pass a test that holds for the first ones and not for the rest.
export function countWhile(c, test) {
  let low = 0;
  let high = c.ranks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (test(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Those of at least a probability; the most probable, with its equals, where there is none. Returns [candidates, note].
export function atLeast(c, cutoff, tolerance) {
  const weights = weigh(c);
  const count = countWhile(c, (i) => weights[i] / c.total >= cutoff * (1 - tolerance));
  if (count > 0) return [keepFirst(c, count), null];
  return [keepFirst(c, countWhile(c, (i) => c.logits[i] === c.logits[0])), { kind: "one_kept" }];
}

// The same tokens with some logits changed: the changed ones are taken out and merged in again where they belong now.
// changes: Map rank -> function of the tempered logit. A logit of -inf takes its token out of play.
export function edited(c, changes, ids) {
  const byRank = new Float64Array(c.byRank.length);
  for (let rank = 0; rank < byRank.length; rank++) byRank[rank] = c.byRank[rank] / c.temperature;
  const marked = new Uint8Array(byRank.length);
  for (const rank of changes.keys()) marked[rank] = 1;
  const moved = [];
  const n = c.ranks.length;
  const ranks = new Int32Array(n);
  const logits = new Float64Array(n);
  for (const rank of c.ranks) {
    if (!marked[rank]) continue;
    byRank[rank] = changes.get(rank)(byRank[rank]);
    if (byRank[rank] > -Infinity) moved.push(rank);
  }
  const before = (a, b) => byRank[b] - byRank[a] || ids[a] - ids[b];
  moved.sort(before);
  let written = 0;
  let next = 0;
  const write = (rank) => {
    ranks[written] = rank;
    logits[written++] = byRank[rank];
  };
  for (const rank of c.ranks) {
    if (marked[rank]) continue;
    while (next < moved.length && before(moved[next], rank) < 0) write(moved[next++]);
    write(rank);
  }
  while (next < moved.length) write(moved[next++]);
  if (written === 0) throw new RangeError("overflow"); // no token is left
  if (logits[0] === Infinity) throw new RangeError("overflow");
  return candidates(ranks.subarray(0, written), logits.subarray(0, written), byRank, 1, c.ranked);
}

// The same tokens with other logits: change(tempered logit).
export function relogit(c, change, ids) {
  const byRank = new Float64Array(c.byRank.length);
  for (let rank = 0; rank < byRank.length; rank++) byRank[rank] = change(c.byRank[rank] / c.temperature);
  const before = (a, b) => byRank[b] - byRank[a] || ids[a] - ids[b];
  let ranks = c.ranks;
  for (let i = 1; i < ranks.length; i++) {
    if (byRank[ranks[i]] <= byRank[ranks[i - 1]]) continue;
    ranks = ranks.slice().sort(before);
    break;
  }
  return candidates(ranks, along(ranks, byRank), byRank, 1, c.ranked);
}

// The values of ranks, in their order.
export function along(ranks, values) {
  const found = new Float64Array(ranks.length);
  for (let i = 0; i < found.length; i++) found[i] = values[ranks[i]];
  return found;
}

// Probability of a token among the candidates c, 0 when `isIn` is false.
export function probability(c, rank, isIn = true) {
  weigh(c);
  return isIn ? Math.exp((c.byRank[rank] - c.logits[0]) / c.temperature) / c.total : 0;
}

export function entropyNats(c) {
  const weights = weigh(c);
  const { logits, temperature, total } = c;
  const largest = logits[0];
  let sum = 0;
  for (let i = 0; i < weights.length && weights[i] > 0; i++) sum += weights[i] * (logits[i] - largest);
  return Math.log(total) - sum / temperature / total;
}

export const entropyBits = (c) => Math.max(entropyNats(c), 0) / Math.LN2;
