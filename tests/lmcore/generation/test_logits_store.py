"""Logits kept, dropped and made again are those of the whole text; positions stay right whatever the cache held."""

import random

import pytest
import torch

import lmcore
from lmcore.generation.logits_store import LogitsStore

ENCODINGS = ("rope", "learned", "sinusoidal", "alibi", "relative", "none")


def random_model(encoding: str) -> lmcore.LanguageModel:
    torch.manual_seed(4)
    tokenizer = lmcore.builtin.tokenizer()
    config = lmcore.ModelConfig(
        vocab_size=tokenizer.vocab_size,
        d_model=32,
        n_layers=2,
        n_heads=4,
        n_kv_heads=2,
        context_length=32,
        init_std=0.3,
        position_encoding=encoding,
    )
    return lmcore.LanguageModel("random", lmcore.Model(config), tokenizer)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_any_order_of_asking_gives_the_logits_of_the_whole_text(encoding: str) -> None:
    lm = random_model(encoding)
    store = LogitsStore(lm, max_bytes=3 * 4 * lm.config.vocab_size)  # three rows: most are made again
    rng = random.Random(1)
    trunk = [rng.randrange(1600) for _ in range(32)]
    texts = [trunk[: rng.randint(1, 32)] for _ in range(12)]
    texts += [[*trunk[: rng.randint(1, 20)], *(rng.randrange(1600) for _ in range(5))] for _ in range(12)]
    rng.shuffle(texts)
    for ids in [*texts, *texts]:
        torch.testing.assert_close(store.get(ids).logits, lm(ids)[-1], atol=1e-5, rtol=1e-4)
        if len(ids) > 4:  # one pass over the end of a text
            store.fill(ids[:3], ids[3:])


def test_what_is_kept_is_bounded_and_the_latest_stays() -> None:
    lm = random_model("rope")
    store = LogitsStore(lm, max_bytes=2 * 4 * lm.config.vocab_size)
    first = store.get([5]).logits
    assert store.get([5]).logits is first
    store.get([5, 6])
    store.get([5, 6, 7])
    assert store.get([5]).logits is not first
    assert LogitsStore(lm, max_bytes=0).get([5]).logits.shape == (1600,)


def test_fill_gives_every_row_and_none_beyond_the_context() -> None:
    lm = random_model("rope")
    store = LogitsStore(lm)
    ids = list(range(100, 140))
    store.fill(ids[:5], ids[5:])
    for length in range(5, 33):
        kept = store.get(ids[:length])
        assert kept.seconds == 0.0  # not computed now
        torch.testing.assert_close(kept.logits, lm(ids[:length])[-1], atol=1e-5, rtol=1e-4)
    with pytest.raises(ValueError, match="context_length = 32"):
        store.get(ids[:33])


def test_a_text_refused_leaves_the_cache_usable() -> None:
    lm = random_model("rope")
    store = LogitsStore(lm)
    store.get([1, 2, 3])
    for wrong in ([1, 2, 99999], [1] * 40):
        with pytest.raises(ValueError):
            store.get(wrong)
        torch.testing.assert_close(store.get([1, 2, 3, 4]).logits, lm([1, 2, 3, 4])[-1], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_rows_of_a_cache_go_on_each_by_itself(encoding: str) -> None:
    lm = random_model(encoding)
    prompt = lm.new_cache()
    lm([7, 8, 9], cache=prompt)
    both = prompt.select([0, 0])
    lm(torch.tensor([[20], [30]]), cache=both)
    swapped = both.select([1, 1, 0])
    logits = lm(torch.tensor([[40], [50], [60]]), cache=swapped)[:, -1]
    for row, ids in zip(logits, ([7, 8, 9, 30, 40], [7, 8, 9, 30, 50], [7, 8, 9, 20, 60]), strict=True):
        torch.testing.assert_close(row, lm(ids)[-1], atol=1e-5, rtol=1e-4)
    assert (prompt.length, both.length, swapped.length) == (3, 4, 5)
    torch.testing.assert_close(lm([70], cache=prompt)[-1], lm([7, 8, 9, 70])[-1], atol=1e-5, rtol=1e-4)
