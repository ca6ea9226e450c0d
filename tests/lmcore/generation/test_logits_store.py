"""Logits kept, dropped and made again are those of the whole text; positions stay right whatever the cache held."""

import random

import pytest
import torch

import lmcore
from lmcore.generation.logits_store import LogitsStore
from lmcore.generation.tree import GenerationTree
from lmcore.memory import SharedLimit
from lmcore.parameters import kv_cache_bytes

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


@pytest.mark.slow
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


def test_a_store_that_forgets_takes_no_memory_and_computes_again() -> None:
    lm = random_model("rope")
    store = LogitsStore(lm)
    before = store.get([1, 2, 3]).logits
    assert store.nbytes >= before.nbytes + kv_cache_bytes(lm.config, 3)
    store.forget()
    assert store.nbytes == 0
    torch.testing.assert_close(store.get([1, 2, 3]).logits, before)


def test_trees_share_a_limit_and_go_on_after_they_have_forgotten() -> None:
    lm = random_model("rope")
    settings = lmcore.SamplingSettings(seed=1)
    limit = SharedLimit(3 * 4 * lm.config.vocab_size + 60_000)
    trees = [GenerationTree(lm, [5, each], limit) for each in range(6)]
    nodes = [tree.root for tree in trees]
    for _ in range(4):
        nodes = [tree.draw(node, settings) for tree, node in zip(trees, nodes, strict=True)]
        assert limit.nbytes <= max(limit.max_bytes, max(tree.nbytes for tree in trees))
    assert sum(tree.nbytes == 0 for tree in trees) >= 3
    for tree, node in zip(trees, nodes, strict=True):
        steps = lmcore.generate(lm, tree.prompt_ids, settings, max_new_tokens=4)
        assert [step.token_id for step in steps] == [step.token_id for step in tree.path(node)]
