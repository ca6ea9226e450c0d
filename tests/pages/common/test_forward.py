"""The cache of forward passes: right answers, bounded memory, one pass at a time."""

import threading
from typing import Any

import pytest
import torch

import lmcore
from lmcore.config import ModelConfig
from lmcore.model import Model
from pages.common.forward import ForwardPasses, longest_traced, run


class Counting(lmcore.LanguageModel):
    """A small model that counts its passes and fails when two run at once."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        tokenizer = lmcore.builtin.tokenizer()
        config = ModelConfig(vocab_size=tokenizer.vocab_size, d_model=8, n_layers=1, n_heads=2, context_length=16)
        super().__init__("counting", Model(config), tokenizer)
        self.passes, self._running = 0, threading.Lock()

    def __call__(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        assert self._running.acquire(blocking=False), "two passes at once"
        logits = super().__call__(*args, **kwargs)
        self.passes += 1
        self._running.release()
        return logits


def test_a_pass_runs_once_and_gives_the_models_logits() -> None:
    lm, passes = Counting(), ForwardPasses(2**20)
    first = passes.get("m", (1, 2), False, lambda: lm)
    assert passes.get("m", (1, 2), False, lambda: lm) is first
    assert lm.passes == 1
    torch.testing.assert_close(first.logits, lm((1, 2)))
    passes.get("m", (2, 1), False, lambda: lm)
    passes.get("other", (1, 2), False, lambda: lm)
    assert lm.passes == 4


def test_a_traced_pass_serves_the_logits_too() -> None:
    lm, passes = Counting(), ForwardPasses(2**20)
    traced = passes.get("m", (1, 2), True, lambda: lm)
    assert "blocks.0.attn.pattern" in traced.trace
    assert passes.get("m", (1, 2), False, lambda: lm) is traced
    assert lm.passes == 1


def test_memory_is_bounded_and_the_least_recent_goes_first() -> None:
    lm = Counting()
    one = ForwardPasses(2**20).get("m", (1, 2), False, lambda: lm).n_bytes
    assert one == 2 * lm.config.vocab_size * 4
    passes = ForwardPasses(2 * one)
    for ids in [(1, 2), (3, 4)]:
        passes.get("m", ids, False, lambda: lm)
    passes.get("m", (1, 2), False, lambda: lm)
    passes.get("m", (5, 6), False, lambda: lm)  # (3, 4) has to go
    before = lm.passes
    passes.get("m", (1, 2), False, lambda: lm)
    assert lm.passes == before
    passes.get("m", (3, 4), False, lambda: lm)
    assert lm.passes == before + 1


def test_a_pass_larger_than_the_cache_stays_while_small_ones_come_and_go() -> None:
    lm = Counting()
    one = ForwardPasses(2**20).get("m", (1, 2), False, lambda: lm).n_bytes
    passes = ForwardPasses(2 * one)
    large = passes.get("m", (1,) * 9, False, lambda: lm)
    for ids in [(1, 2), (3, 4), (5, 6)]:
        passes.get("m", ids, False, lambda: lm)
    before = lm.passes
    assert passes.get("m", (1,) * 9, False, lambda: lm) is large
    passes.get("m", (5, 6), False, lambda: lm)
    assert lm.passes == before
    passes.get("m", (2,) * 9, False, lambda: lm)  # another large one takes its place
    passes.get("m", (1,) * 9, False, lambda: lm)
    assert lm.passes == before + 2


def test_sessions_share_one_pass_and_never_run_two_at_once() -> None:
    lm, passes, results = Counting(), ForwardPasses(2**20), []
    threads = [
        threading.Thread(target=lambda n=n: results.append(passes.get("m", (n % 3,) * 12, True, lambda: lm)))
        for n in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 12 and lm.passes == 3


def test_a_kept_pass_is_given_while_another_one_runs() -> None:
    lm, passes, answers = Counting(), ForwardPasses(2**20), []
    kept = passes.get("m", (1, 2), True, lambda: lm)
    with passes.lock:
        asking = threading.Thread(target=lambda: answers.append(passes.get("m", (1, 2), False, lambda: lm)))
        asking.start()
        asking.join(timeout=30)
        assert answers == [kept]


def test_shared_tensors_refuse_to_be_changed_in_place() -> None:
    lm = Counting()
    logits = ForwardPasses(2**20).get("m", (1, 2), False, lambda: lm).logits
    with pytest.raises(RuntimeError, match="[Ii]nference"):
        logits.add_(1)


@pytest.mark.parametrize("name", ["small-world", "small-world-alibi", "small-world-learned"])
def test_the_longest_text_is_the_longest_that_fits(name: str) -> None:
    lm = lmcore.load(name)
    for budget in (2_000_000, 4_000_000):
        longest = longest_traced(lm, budget)
        sizes = [run(lm, [0] * length, traced=True).n_bytes for length in (longest, longest + 1)]
        assert sizes[0] <= budget < sizes[1]
    assert longest_traced(lm, 10**12) == lm.config.context_length
