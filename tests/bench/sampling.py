"""The sampler chain against transformers' warpers, in one run: `python -m tests.bench.sampling`.

Both sides get the same float32 logits and end with the probabilities of the whole vocabulary. Ours are in float64
and come with the steps; theirs are in float32. The two are timed in blocks that take turns, so that a busy machine
slows both, and the ratio of the medians is printed. Shapes of logits: "gaussian" is N(0, 3); "zipf" falls as 1 / rank;
"flat" is nearly uniform, the hardest for a nucleus because most tokens are in it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import LogitsProcessorList, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from lmcore.sampling import SamplingSettings, draw, new_generator, reshape

VOCAB_SIZE = 151_936
BLOCKS, WARM_UP = 5, 3
TARGETS = {"temperature, top-k, top-p": 0.1, "temperature, top-p": 0.2}


class Row(NamedTuple):
    """One comparison: milliseconds of each side, their ratio, and the ratio aimed at."""

    chain: str
    logits: str
    kept: int
    ours_ms: float
    theirs_ms: float
    ratio: float
    target: float


def shapes(vocab_size: int, seed: int = 0) -> dict[str, Tensor]:
    """Float32 logits `[vocab_size]` of three shapes, the same for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(vocab_size, generator=generator)
    ranks = torch.randperm(vocab_size, generator=generator) + 1
    return {"gaussian": noise * 3, "zipf": -torch.log(ranks.float()), "flat": noise * 0.01}


def compare(vocab_size: int = VOCAB_SIZE, runs: int = 60) -> list[Row]:
    """Time both sides on every chain and shape.

    Args:
        vocab_size: V.
        runs: How often each side runs; the median counts.

    Returns:
        One row for each chain and shape of logits.
    """
    chains = {
        "temperature, top-k, top-p": (
            SamplingSettings(temperature=0.8, top_k=50, top_p=0.9),
            LogitsProcessorList([TemperatureLogitsWarper(0.8), TopKLogitsWarper(50), TopPLogitsWarper(0.9)]),
        ),
        "temperature, top-p": (
            SamplingSettings(temperature=0.8, top_p=0.9),
            LogitsProcessorList([TemperatureLogitsWarper(0.8), TopPLogitsWarper(0.9)]),
        ),
    }
    rows = []
    with torch.inference_mode():
        for name, (settings, warpers) in chains.items():
            for shape, logits in shapes(vocab_size).items():
                ours_ms, theirs_ms = _medians(
                    partial(reshape, logits, settings),
                    partial(_warped, logits, warpers),
                    runs,
                )
                kept = reshape(logits, settings).candidates
                rows.append(Row(name, shape, kept, ours_ms, theirs_ms, ours_ms / theirs_ms, TARGETS[name]))
    return rows


def _warped(logits: Tensor, warpers: LogitsProcessorList) -> Tensor:
    return torch.softmax(warpers(None, logits.unsqueeze(0)), dim=-1)


def draw_ms(vocab_size: int = VOCAB_SIZE, runs: int = 60) -> float:
    """Milliseconds of one draw from the chain with top-k, reshaping included."""
    logits = shapes(vocab_size)["gaussian"]
    settings, generator = SamplingSettings(temperature=0.8, top_k=50, top_p=0.9), new_generator(0)
    with torch.inference_mode():
        ours, _ = _medians(lambda: draw(reshape(logits, settings), generator), lambda: None, runs)
    return ours


def _medians(ours: Callable[[], object], theirs: Callable[[], object], runs: int) -> tuple[float, float]:
    """Median milliseconds of each side, over blocks that take turns.

    Blocks, because run by run each side would pay for the other's memory: a sort of V numbers empties the caches and
    hands pages back, which the next call then has to fault in again.
    """
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(BLOCKS):
        for side, run in enumerate((ours, theirs)):
            for _ in range(WARM_UP):
                run()
            for _ in range(runs // BLOCKS):
                start = time.perf_counter()
                run()
                times[side].append((time.perf_counter() - start) * 1e3)
    return statistics.median(times[0]), statistics.median(times[1])


def main() -> None:
    """Print the comparison."""
    print(f"V = {VOCAB_SIZE:,}, {torch.get_num_threads()} threads, torch {torch.__version__}; medians in ms")
    print(f"{'chain':<27}{'logits':<10}{'kept':>8}{'ours':>9}{'transformers':>14}{'ratio':>8}{'target':>8}")
    for row in compare():
        met = "met" if row.ratio <= row.target else "MISSED"
        print(
            f"{row.chain:<27}{row.logits:<10}{row.kept:>8,}{row.ours_ms:>9.3f}{row.theirs_ms:>14.3f}"
            f"{row.ratio:>8.3f}{row.target:>8.1f}  {met}"
        )
    print(f"reshape with top-k and draw one token: {draw_ms():.3f} ms")


if __name__ == "__main__":
    main()
