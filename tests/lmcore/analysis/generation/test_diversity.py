"""distinct-n and self-BLEU against counts made by hand and numpy."""

import math

import numpy as np
import pytest

from lmcore.analysis.generation.diversity import bleu, distinct, self_bleu


def test_distinct_counts_over_all_texts_together() -> None:
    texts = [[1, 2, 1, 2], [1, 2, 3]]
    assert distinct(texts, 1) == 3 / 7
    assert distinct(texts, 2) == 3 / 5  # 12 21 12 | 12 23
    assert distinct(texts, 3) == 3 / 3
    assert distinct(texts, 5) is None
    assert distinct([[], []], 1) is None


def test_distinct_takes_no_ngram_across_two_texts() -> None:
    assert distinct([[1], [2]], 2) is None


def test_bleu_of_the_paper() -> None:
    """Papineni et al. 2002, examples 1 and 2: candidate 1 has 17/18 unigrams and 10/17 bigrams, "the" x 7 has 2/7."""
    references = [
        "It is a guide to action that ensures that the military will forever heed Party commands",
        "It is the guiding principle which guarantees the military forces always being under the command of the Party",
        "It is the practical guide for the army always to heed the directions of the party",
    ]
    candidate = "It is a guide to action which ensures that the military always obeys the commands of the party"
    words = [text.split() for text in references]
    assert bleu(candidate.split(), words, 1) == pytest.approx(17 / 18)
    assert bleu(candidate.split(), words, 2) == pytest.approx(math.sqrt(17 / 18 * 10 / 17))
    sevens = [text.split() for text in ("the cat is on the mat", "there is a cat on the mat")]
    assert bleu(["the"] * 7, sevens, 1) == pytest.approx(2 / 7)


def test_short_texts_are_held_to_account() -> None:
    assert bleu([1, 2], [[1, 2, 3, 4]], 2) == pytest.approx(math.exp(1 - 4 / 2))
    assert bleu([1, 2], [[1, 2, 3, 4], [1, 2]], 2) == 1.0


def test_self_bleu_is_the_mean_over_the_texts() -> None:
    rng = np.random.default_rng(0)
    texts = [rng.integers(0, 4, size=12).tolist() for _ in range(5)]
    expected = np.mean([bleu(text, texts[:i] + texts[i + 1 :]) for i, text in enumerate(texts)])
    assert self_bleu(texts) == pytest.approx(expected) and 0 < expected < 1
    assert self_bleu([texts[0]] * 3) == pytest.approx(1)
    assert self_bleu([texts[0], []]) is None
