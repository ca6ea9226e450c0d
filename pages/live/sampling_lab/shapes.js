// Stages that follow the shape of the distribution: its tail, its gaps, its entropy, its collision probability.
// The counterpart of lmcore/sampling/stages/shape.py.

import { atLeast, countWhile, keepFirst, relogit, weigh } from "./candidates.js";

export const SHAPES = {
  smoothing_factor(c, factor, { settings, ids }) {
    const curve = settings.smoothing_curve ?? 1;
    const largest = c.logits[0] / c.temperature;
    const square = ((3 - curve) / 2) * factor;
    const cube = ((curve - 1) / 2) * factor;
    const bent = (z) => {
      const below = z - largest;
      return largest - square * below * below + cube * below * below * below;
    };
    return [relogit(c, bent, ids), null];
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
    for (let i = 0; i < weights.length; i++) {
      const p = weights[i] / c.total;
      sum += order === 2 ? p * p : p ** order;
    }
    let cutoff = sum ** (1 / (order - 1));
    if (form === 2) cutoff = (size * cutoff - 1) / (size - 1);
    return atLeast(c, cutoff, tolerance);
  },

  // Until the normalised second differences of the falling probabilities add up to more than z.
  tfs_z(c, z) {
    const n = c.ranks.length;
    if (n <= 2) return [c, null];
    const weights = weigh(c);
    const bends = new Float64Array(n - 2);
    let total = 0;
    for (let i = 0; i + 2 < n; i++) {
      total += bends[i] = Math.abs(weights[i + 2] - 2 * weights[i + 1] + weights[i]) / c.total;
    }
    let sum = 0;
    for (let i = 0; i + 2 < n; i++) {
      sum += total > 1e-6 ? bends[i] / total : 1 / (n - 2);
      if (sum > z) return [keepFirst(c, Math.max(i, 1)), null];
    }
    return [c, null];
  },
};
