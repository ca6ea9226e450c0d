"""How much several texts repeat themselves and one another: distinct-n and self-BLEU."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence

Text = Sequence[Hashable]


def ngrams(text: Text, n: int) -> list[tuple[Hashable, ...]]:
    """Return all runs of n tokens, in order.

    >>> ngrams("abca", 2)
    [('a', 'b'), ('b', 'c'), ('c', 'a')]
    """
    return [tuple(text[i : i + n]) for i in range(len(text) - n + 1)]


def distinct(texts: Sequence[Text], n: int) -> float | None:
    """Return distinct-n: the share of different n-grams among all n-grams of the texts (Li et al. 2016, section 5).

    Args:
        texts: tokens of each text.
        n: length of the n-grams, at least 1.

    Returns:
        From nearly 0 (the same over and over) to 1 (nothing comes twice); None where no text has n tokens.

    >>> distinct(["aab", "ab"], 1), distinct(["a"], 2)
    (0.4, None)
    """
    found = [gram for text in texts for gram in ngrams(text, n)]
    return len(set(found)) / len(found) if found else None


def self_bleu(texts: Sequence[Text], max_n: int = 3) -> float | None:
    """Return the mean BLEU of each text with all others as its references (Zhu et al. 2018, section 3.2.2).

    Args:
        texts: tokens of each text.
        max_n: the longest n-grams compared.

    Returns:
        From 0 (nothing in common) to 1 (all alike); None for fewer than two texts with a token.

    >>> self_bleu(["abcd", "abcd"]), self_bleu(["abcd", "efgh"]), self_bleu(["a"])
    (1.0, 0.0, None)
    """
    filled = [text for text in texts if text]
    if len(filled) < 2:
        return None
    scores = [bleu(text, [*filled[:i], *filled[i + 1 :]], max_n) for i, text in enumerate(filled)]
    return math.fsum(scores) / len(scores)


def bleu(text: Text, references: Sequence[Text], max_n: int = 3) -> float:
    """Return BLEU: the geometric mean of the clipped n-gram precisions, times a penalty for being short.

    Papineni et al. 2002, section 2.3, without smoothing; n-grams longer than the text are left out.

    Args:
        text: tokens, at least one.
        references: tokens of the texts it is held against, at least one.
        max_n: the longest n-grams compared.

    >>> bleu("aaa", ["aab"], 1)
    0.6666666666666666
    """
    logs = []
    for n in range(1, min(max_n, len(text)) + 1):
        own = Counter(ngrams(text, n))
        most: Counter[tuple[Hashable, ...]] = Counter()
        for reference in references:
            most |= Counter(ngrams(reference, n))
        shared = sum((own & most).values())
        if not shared:
            return 0.0
        logs.append(math.log(shared / sum(own.values())))
    nearest = min((len(reference) for reference in references), key=lambda size: (abs(size - len(text)), size))
    brevity = min(0.0, 1 - nearest / len(text))
    return math.exp(math.fsum(logs) / len(logs) + brevity)
