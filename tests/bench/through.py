"""A text under a slider, all positions together against the chain at each: `python -m tests.bench.through`.

512 positions of 49,152 logits, as many as SmolLM2 gives a text: a heavy head and a long tail. What is measured is
processor time, in the same run for both sides; the first move of a slider, and the next one of another slider, which
finds what does not depend on it. The chain goes through a sixteenth of the positions, and is multiplied.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import torch

from lmcore.analysis.sampling.through import ScoredThrough, TextLogits
from lmcore.sampling import History, SamplingSettings, reshape

POSITIONS, VOCAB_SIZE, PART = 512, 49_152, 16
TARGET_MS = 200.0
MOVES = (
    ({"temperature": 0.8, "top_p": 0.9}, {"temperature": 0.8, "top_p": 0.85}),
    ({"temperature": 1.5, "top_p": 0.95}, {"temperature": 1.5, "top_p": 0.9}),
    ({"top_k": 40, "min_p": 0.05}, {"top_k": 50, "min_p": 0.05}),
    ({"typical_p": 0.9}, {"typical_p": 0.8}),
    ({"repetition_penalty": 1.2, "top_p": 0.9}, {"repetition_penalty": 1.2, "top_p": 0.85}),
)


def text() -> TextLogits:
    """Return a text of logits that are drawn, and of tokens that are among the more probable."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(POSITIONS + 1, VOCAB_SIZE, generator=generator) * 3
    lifted = torch.rand(logits.shape, generator=generator) < 2e-3
    logits += torch.randn(len(logits), 1, generator=generator).abs() * lifted * 6
    ids = logits.topk(100).indices[:, torch.randint(100, (1,), generator=generator)].squeeze(1).roll(1)
    return TextLogits.of(logits, ids.tolist())


def milliseconds(work: Callable[[], object]) -> float:
    """Return the processor time that work takes."""
    begun = time.process_time()
    work()
    return 1000 * (time.process_time() - begun)


def one_by_one(given: TextLogits, settings: SamplingSettings) -> None:
    """Run the chain at some of the positions."""
    for place in range(0, POSITIONS, PART):
        float(reshape(given.logits[place], settings, History(prompt=given.ids[: place + 1])).entropy_bits)


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    given = text()
    print(f"{'settings':<52}{'first ms':>10}{'next ms':>9}{'chain ms':>10}{'ratio':>7}")
    for first, following in MOVES:
        settings, others = SamplingSettings(**first), SamplingSettings(**following)
        now = milliseconds(partial(ScoredThrough.of, given, settings))
        then = milliseconds(partial(ScoredThrough.of, given, others))
        chain = PART * milliseconds(partial(one_by_one, given, settings))
        met = "met" if now <= TARGET_MS else "MISSED"
        print(f"{settings!r:<52.52}{now:>10.0f}{then:>9.0f}{chain:>10.0f}{now / chain:>7.2f}  {met}", flush=True)


if __name__ == "__main__":
    main()
