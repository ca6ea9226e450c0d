// Keep tokens of some order until their probability adds up: top-p, exllamav2's top-p, and typical sampling.
// The counterpart of lmcore/sampling/nucleus.py, for candidates that are sorted already.

import { countWhile, entropyNats, keepFirst, keepMarked, weigh } from "./candidates.js";

const LEAST_SHARE = 1e-6; // exllamav2's top-p never keeps a token less probable than this

const WEIGHTY = 1000; // a token lighter than so many tolerances is no matter of a boundary given in decimals

// By falling probability, until the sum is p or more (or, where it has to exceed p, more): the crossing token stays,
// unless the sum before it misses p by no more than the tolerance.
export function untilMass(c, p, { top_p_ties: ties, top_p_boundary: boundary }, tolerance) {
  const weights = weigh(c);
  const { sums, total } = c;
  const exceeds = boundary === "exceed";
  const isShort = (place) => (exceeds ? sums[place] / total <= p : sums[place] / total < p);
  let i = Math.min(countWhile(c, isShort), sums.length - 1);
  if (!exceeds && isEnough(i > 0 ? sums[i - 1] / total : 0, p, weights[i] / total, tolerance) && i > 0) i--;
  if (ties === "all") return keepFirst(c, countWhile(c, (place) => c.logits[place] >= c.logits[i]));
  if (ties === "lowest" || c.logits[i + 1] !== c.logits[i]) return keepFirst(c, i + 1);
  // Of the equal ones at the boundary the highest ids enter first, and they stand last.
  let start = i;
  while (start > 0 && c.logits[start - 1] === c.logits[i]) start--;
  const end = start + countWhile(after(c, start), (j) => c.logits[start + j] === c.logits[i]);
  const marks = new Uint8Array(end).fill(1, 0, start).fill(1, end - (i + 1 - start));
  return keepMarked(c, marks, i + 1);
}

// Does a share before a token reach the mass within the tolerance, though not quite?
const isEnough = (share, mass, weight, tolerance) =>
  tolerance > 0 && share >= mass - tolerance && weight > WEIGHTY * tolerance;

const after = (c, start) => ({ ranks: c.ranks.subarray(start) });

// Tokens arrive and are kept while their sum is within p; one that would carry it past p pushes the smallest out.
export function fitWithin(c, p, { ids, rankOf }) {
  const weights = weigh(c);
  const n = weights.length;
  const { total } = c;
  const marks = new Uint8Array(n);
  const eligible = countWhile(c, (i) => weights[i] / total >= LEAST_SHARE);
  const arrival = c.ranked ? fallingHighestIdFirst(c, eligible) : byId(c, eligible, rankOf, ids.length);
  const heap = new Heap((a, b) => weights[a] - weights[b] || ids[c.ranks[a]] - ids[c.ranks[b]]);
  let sum = 0;
  for (const i of arrival) {
    const fits = (sum + weights[i]) / total <= p;
    if (!fits && heap.size && weights[i] < weights[heap.least]) continue;
    heap.push(i);
    marks[i] = 1;
    sum += weights[i];
    while (sum / total > p && heap.size > 1) {
      const smallest = heap.pop();
      marks[smallest] = 0;
      sum -= weights[smallest];
    }
  }
  if (!heap.size) return keepFirst(c, 1);
  return keepMarked(c, marks, heap.size);
}

function byId(c, n, rankOf, size) {
  const placeOf = new Int32Array(size).fill(-1); // by rank
  for (let i = 0; i < n; i++) placeOf[c.ranks[i]] = i;
  const places = new Int32Array(n);
  let written = 0;
  for (let id = 0; id < size; id++) {
    const place = placeOf[rankOf[id]];
    if (place >= 0) places[written++] = place;
  }
  return places;
}

function fallingHighestIdFirst(c, n) {
  const places = new Int32Array(n);
  for (let start = 0, end; start < n; start = end) {
    for (end = start + 1; end < n && c.logits[end] === c.logits[start]; ) end++;
    for (let i = start; i < end; i++) places[i] = end - 1 - (i - start);
  }
  return places;
}

// A binary heap of integers, the least of them, by `compare`, on top.
class Heap {
  constructor(compare) {
    this.compare = compare;
    this.items = [];
  }

  get size() {
    return this.items.length;
  }

  get least() {
    return this.items[0];
  }

  push(item) {
    const { items, compare } = this;
    let at = items.length;
    for (let parent; at > 0 && compare(item, items[(parent = (at - 1) >> 1)]) < 0; at = parent) items[at] = items[parent];
    items[at] = item;
  }

  pop() {
    const { items, compare } = this;
    const top = items[0];
    const last = items.pop();
    if (!items.length) return top;
    let at = 0;
    for (let child; (child = 2 * at + 1) < items.length; at = child) {
      if (child + 1 < items.length && compare(items[child + 1], items[child]) < 0) child++;
      if (compare(last, items[child]) <= 0) break;
      items[at] = items[child];
    }
    items[at] = last;
    return top;
  }
}

// Keep the tokens whose score is nearest to its expectation, until they add up to the mass. They enter from where the
// score meets the expectation outwards; on the left in runs of equal logits, as of equals the lower id enters first.
export function aroundTypical(c, mass, rules, tolerance) {
  const { typical_boundary: boundary, typical_ties: ties, typical_score: kind } = rules;
  const weights = weigh(c);
  const { logits, temperature, total } = c;
  const n = logits.length;
  const added = kind === "exllamav2" ? (i) => weights[i] / total : () => 0;
  const logTotal = Math.log(total);
  const score = (i) => (logits[i] - logits[0]) / temperature - logTotal + added(i); // falls with i
  let expected = -entropyNats(c);
  if (kind === "exllamav2") for (let i = 0; i < n; i++) expected += (weights[i] / total) ** 2;
  const distance = (i) => Math.abs(score(i) - expected);
  let right = countWhile(c, (i) => score(i) > expected);
  let runStart = right; // everything before it waits on the left
  let left = right; // the next to enter from the left; left === runEnd when the run is used up
  let runEnd = right;
  const marks = new Uint8Array(n);
  let count = 0;
  let sum = 0;
  let reached; // the distance of the last one that entered
  const goesOn = {
    reach: (next) => sum / total < mass && !isEnough(sum / total, mass, weights[next] / total, tolerance),
    exceed: () => sum / total <= mass,
    dropped: (next) => (sum + weights[next]) / total < mass,
  }[boundary];
  const nextLeft = () => {
    if (left === runEnd && runStart > 0) {
      runEnd = runStart;
      while (runStart > 0 && logits[runStart - 1] === logits[runEnd - 1]) runStart--;
      left = runStart;
    }
    return left < runEnd ? distance(left) : Infinity;
  };
  let leftDistance = nextLeft();
  let rightDistance = right < n ? distance(right) : Infinity;
  while (count < n) {
    const isLeft = leftDistance <= rightDistance;
    const next = isLeft ? left : right;
    const nearest = isLeft ? leftDistance : rightDistance;
    if (count > 0 && !goesOn(next) && !(ties === "all" && nearest === reached)) break;
    marks[next] = 1;
    sum += weights[next];
    count++;
    reached = nearest;
    if (isLeft) {
      left++;
      leftDistance = nextLeft();
    } else {
      right++;
      rightDistance = right < n ? distance(right) : Infinity;
    }
  }
  return keepMarked(c, marks, count);
}
