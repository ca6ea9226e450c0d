"""What a sampler should keep, written out in numpy float64 and exact fractions: slow, plain, and independent."""

from fractions import Fraction

import numpy as np

WORKED = [2.3, 1.5, 3.8, 0.5, 1.2]  # 很 好 不错 真 差 after 今天天气
WORKED_NAMES = ("很", "好", "不错", "真", "差")


def softmax(logits):
    """Probabilities, with -inf as 0."""
    logits = np.asarray(logits, dtype=np.float64)
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def masked(logits, kept):
    """Logits with all but `kept` at -inf."""
    out = np.full(len(logits), -np.inf)
    kept = list(kept)
    out[kept] = np.asarray(logits, dtype=np.float64)[kept]
    return out


def by_probability(logits):
    """Ids by falling logit, of equal ones the lower first; impossible tokens left out."""
    return sorted((i for i, z in enumerate(logits) if z > -np.inf), key=lambda i: (-logits[i], i))


def top_k(logits, k):
    """The k most probable ids."""
    return set(by_probability(logits)[:k])


def top_p(logits, p):
    """Ids that enter by falling probability until the exact sum of their float64 probabilities reaches p."""
    probs, total, kept = softmax(logits), Fraction(0), set()
    target = Fraction(float(p)) * sum(Fraction(float(x)) for x in probs)
    for token in by_probability(logits):
        kept.add(token)
        total += Fraction(float(probs[token]))
        if total >= target:
            break
    return kept


def min_p(logits, m):
    """Ids at least m times as probable as the most probable."""
    probs = softmax(logits)
    return {i for i, p in enumerate(probs) if p > 0 and p >= m * probs.max()}


def typical_p(logits, mass):
    """Ids by nearness of surprisal to entropy until the mass is reached."""
    probs = softmax(logits)
    possible = [i for i in range(len(probs)) if probs[i] > 0]
    entropy = -sum(probs[i] * np.log(probs[i]) for i in possible)
    total, kept = 0.0, set()
    for token in sorted(possible, key=lambda i: (abs(-np.log(probs[i]) - entropy), i)):
        kept.add(token)
        total += probs[token]
        if total >= mass:
            break
    return kept


def epsilon(logits, cutoff):
    """Ids with at least this probability, or the most probable."""
    probs = softmax(logits)
    return {i for i, p in enumerate(probs) if p >= cutoff} or {int(i) for i in np.flatnonzero(probs == probs.max())}


def eta(logits, cutoff):
    """Ids with at least min(cutoff, sqrt(cutoff) * exp(-entropy))."""
    probs = softmax(logits)
    positive = probs[probs > 0]
    entropy = -(positive * np.log(positive)).sum()
    return epsilon(logits, min(cutoff, np.sqrt(cutoff) * np.exp(-entropy)))


def top_n_sigma(logits, n):
    """Ids within n population standard deviations of the largest logit."""
    logits = np.asarray(logits, dtype=np.float64)
    finite = logits[np.isfinite(logits)]
    return {i for i, z in enumerate(logits) if z >= finite.max() - n * finite.std()}


def exllamav2_top_p(logits, p, by_rank):
    """Keep a running best set: add each token, and drop the smallest while the sum is above p."""
    probs = softmax(logits)
    arrival = by_probability(logits) if by_rank else range(len(probs))
    kept = []
    for token in arrival:
        if probs[token] < 1e-6:
            continue
        kept.append(token)
        while len(kept) > 1 and sum(probs[i] for i in kept) > p:
            kept.remove(min(kept, key=lambda i: probs[i]))
    return set(kept)
