"""Two models compared on a text: `python -m tests.bench.comparing [A B] [--tokens 512]`.

Prints how long a pass of each side takes, how long the comparison takes beside the two passes, and how long it takes to
read the two distributions of one place from logits that are there.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

import lmcore
from lmcore.compare import Side, compare

TEXT = "The weather today is nice, and the children play in the garden behind the old house. " * 60


def timed(what: str, work: Callable[[], Any]) -> tuple[float, Any]:
    """Do it, print how long it took, and return that in seconds with what it gave."""
    began, worked = time.perf_counter(), time.process_time()
    found = work()
    took = time.perf_counter() - began
    print(f"{what:44}{took:8.3f} s, {time.process_time() - worked:8.3f} s of processor time")
    return took, found


def main() -> None:
    """Print the times."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.comparing")
    parser.add_argument("models", nargs="*", default=["smollm2-135m-instruct", "smollm2-135m-instruct:bfloat16"])
    parser.add_argument("--tokens", type=int, default=512)
    given = parser.parse_args()
    torch.set_num_threads(2)
    a, b = (lmcore.load(name) for name in given.models)
    ids = tuple(a.tokenizer.encode(TEXT).ids[: given.tokens])
    print(f"{len(ids)} tokens, {a.name} and {b.name}, 2 threads")
    a(ids[:8]), b(ids[:8])
    logits = {lm.name: timed(f"one pass of {lm.name}", partial(lm, ids))[1] for lm in (a, b)}
    found = compare(Side(model=a, ids=ids), Side(model=b, ids=ids), forward=lambda lm, _ids: logits[lm.name])
    timed("the comparison, beside the two passes", lambda: (found.first_difference, found.divergence))
    timed("the two distributions of one place", lambda: found.beside(len(ids) // 2))
    timed("where in the model they part", lambda: found.parts_in)
    print(found.sentence)


if __name__ == "__main__":
    main()
