"""The comparison measures what it says."""

import pytest

import lmcore
from lmcore.analysis.cache_comparison import cache_bytes, compare_cache


def test_cached_and_plain_logits_agree_at_every_length() -> None:
    lm = lmcore.load("small-world-alibi")
    ids = lm.tokenizer.encode("The weather today is").ids
    found = compare_cache(lm, ids)
    assert len(found.max_difference) == len(ids) == len(found.seconds_with) == len(found.seconds_without)
    assert max(found.max_difference) < 1e-3
    assert found.cache_bytes == [cache_bytes(lm, n) for n in range(1, len(ids) + 1)]
    trace = lmcore.Trace()
    lm(ids, trace=trace)
    kept = [trace[name].nbytes for name in trace if name.endswith(("attn.k", "attn.v"))]
    assert found.cache_bytes[-1] == sum(kept)  # alibi rotates nothing, so the cache holds exactly these


def test_no_ids_are_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        compare_cache(lmcore.load(), [])
