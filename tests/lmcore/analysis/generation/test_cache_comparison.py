"""The comparison measures what it says."""

import pytest

import lmcore
from lmcore.analysis.generation.cache_comparison import cache_bytes, compare_cache


def test_cached_and_plain_logits_agree_at_every_length() -> None:
    lm = lmcore.load("small-world-alibi")
    ids = lm.tokenizer.encode("The weather today is").ids
    *_, found = compare_cache(lm, ids)
    assert found.lengths == tuple(range(1, len(ids) + 1))
    assert len(found.max_difference) == len(ids) == len(found.seconds_with) == len(found.seconds_without)
    assert max(found.max_difference) < 1e-3
    assert list(found.cache_bytes) == [cache_bytes(lm, n) for n in range(1, len(ids) + 1)]
    trace = lmcore.Trace()
    lm(ids, trace=trace)
    kept = [trace[name].nbytes for name in trace if name.endswith(("attn.k", "attn.v"))]
    assert found.cache_bytes[-1] == sum(kept)  # alibi rotates nothing, so the cache holds exactly these


def test_a_short_text_is_gone_on_from_greedily() -> None:
    lm = lmcore.load("small-world")
    ids = lm.tokenizer.encode("I like").ids
    steps = list(compare_cache(lm, ids, 40, points=4))
    # One a token and two more at each length, before the whole text runs: between any two passes the work can stop.
    assert [len(step.lengths) for step in steps] == [n for each in range(4) for n in [each] * (9 + 2) + [each + 1]]
    assert steps[-1].lengths == (10, 20, 30, 40)
    assert max(steps[-1].max_difference) < 1e-3 and min(steps[-1].seconds_with) > 0
    assert steps[-1].cache_bytes[-1] == cache_bytes(lm, 40) == 2 * 4 * 4 * 32 * 40 * 4


def test_bad_requests_are_refused() -> None:
    for ids, more, sentence in (
        ([], {}, "empty"),
        ([5], {"points": 0}, "points is 0"),
        ([5], {"n_tokens": 513}, "n_tokens is 513; the context_length"),
    ):
        with pytest.raises(ValueError, match=sentence):
            list(compare_cache(lmcore.load(), ids, **more))
