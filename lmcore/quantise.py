"""What each kind of quantisation costs a model: `python -m lmcore.quantise MODEL [--text FILE]`.

Prints a table: bits per weight and size in a file, perplexity, mean KLD and "same top p" with their standard errors,
as llama.cpp's perplexity tool defines them. Without a text the built-in models are measured on held-out texts of the
small world, and their KL divergence from the grammar is known too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from tqdm import tqdm

from lmcore.analysis.quantisation.costs import Cost, Estimate, chunks_of, costs, world_chunks
from lmcore.corpus import Truth
from lmcore.loading import built_in, load, model_name
from lmcore.quantisation import KINDS


def table(measured: Sequence[Cost]) -> str:
    """Return what was measured as lines of columns."""
    heads = ["variant", "bits/weight", "MB", "perplexity", "ln ratio", "mean KLD (nats)", "same top p (%)"]
    rows = [
        [
            cost.variant,
            f"{cost.bits_per_weight:.2f}",
            f"{cost.nbytes / 1e6:.2f}",
            _told(cost.perplexity, 4),
            _told(cost.ln_ratio, 5),
            _told(cost.mean_kld, 6),
            _told(Estimate(100 * cost.same_top_share.value, 100 * cost.same_top_share.error), 2),
            *([_told(cost.mean_truth_kld, 5)] if cost.mean_truth_kld is not None else []),
        ]
        for cost in measured
    ]
    heads += ["KL from grammar"] * (len(rows[0]) - len(heads))
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in (heads, *rows))


def _told(estimate: Estimate, digits: int) -> str:
    return f"{estimate.value:.{digits}f} ± {estimate.error:.{digits}f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m lmcore.quantise", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="what lmcore.load takes")
    parser.add_argument("--text", type=Path, help="a file in UTF-8; needed but for the built-in models")
    parser.add_argument("--context", type=int, default=256, metavar="N", help="tokens of a chunk (default: 256)")
    parser.add_argument("--chunks", type=int, default=8, metavar="N", help="chunks at most (default: 8)")
    parser.add_argument(
        "--variants",
        default=",".join(["float32", "bfloat16", *KINDS, "kv8"]),
        help="what may stand after a model's name, separated by commas (default: all)",
    )
    given = parser.parse_args(arguments)
    try:
        lm, variants = load(given.model), given.variants.split(",")
        if not model_name(lm.name).plain:
            parser.error(f"{lm.name} is quantised itself; give the model without it.")
        if given.chunks < 1:
            parser.error(f"--chunks must be at least 1, got {given.chunks}.")
        truth = None
        if given.text is not None:
            text = chunks_of(lm, given.text.read_text(encoding="utf-8"), given.context)[: given.chunks]
        elif built_in(lm.name):
            text, truth = world_chunks(lm, given.chunks), Truth(lm.tokenizer)
        else:
            parser.error("give a text: --text FILE")
        print(f"{lm.name}, {len(text)} chunks, {sum(len(chunk.came) for chunk in text)} tokens scored")
        steps = tqdm(costs(lm, variants, text, truth), total=len(variants) * len(text), file=sys.stderr, leave=False)
        print(table(list(islice(steps, len(text) - 1, None, len(text)))))
    except (ValueError, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
