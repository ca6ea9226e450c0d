"""Compare two models on a text, as a table: `python -m lmcore.compare A B --text FILE`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lmcore.compare.comparison import Comparison, compare
from lmcore.compare.parts import swaps
from lmcore.compare.side import Side
from lmcore.language_model import LanguageModel
from lmcore.loading import load
from lmcore.sampling import SamplingSettings

_SHOWN = 24  # characters of a token in the table


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the comparison; return 0, or 1 where the mean KL(A‖B) is above what is allowed."""
    parser = argparse.ArgumentParser(
        prog="python -m lmcore.compare",
        description="Compare two models on a text: where they part first, and by how much at each position.",
    )
    parser.add_argument("a", help="a model's name, a folder, or a GGUF file")
    parser.add_argument("b", help="the model it is compared with")
    parser.add_argument("--text", required=True, type=Path, help="a file in UTF-8; - reads the standard input")
    parser.add_argument("--control", action="store_true", help="control strings in the text are control tokens")
    parser.add_argument("--tokens", type=int, default=512, help="how many tokens of the text are read (512)")
    parser.add_argument("--new", type=int, default=0, help="how many tokens both generate, greedily (0)")
    parser.add_argument("--worst", type=int, default=10, help="how many of the worst positions are listed (10)")
    parser.add_argument("--parts", action="store_true", help="swap B's tensors for A's: which make the difference?")
    parser.add_argument("--at-most", type=float, metavar="BITS", help="exit with 1 where the mean KL(A‖B) is above")
    given = parser.parse_args(arguments)
    try:
        text = sys.stdin.read() if str(given.text) == "-" else given.text.read_text(encoding="utf-8")
        models = load(given.a), load(given.b)
        a, b = (_side(lm, text, given.control, given.tokens, given.new) for lm in models)
        found = compare(a, b)
        _print(found, given.worst)
        if given.parts:
            _print_parts(*models, found)
    except (ValueError, OSError) as error:  # a file, a name or a value of the user's
        print(error, file=sys.stderr)
        return 2
    if given.at_most is None:
        return 0
    if not found.places:
        print("no position could be compared, so that --at-most cannot be answered.", file=sys.stderr)
        return 2
    return int(float(found.kl.a_b.mean()) > given.at_most)


def _side(lm: LanguageModel, text: str, control: bool, most: int, new: int) -> Side:
    """Return a side that reads the text, or so many tokens of it as are asked for and fit."""
    most = min(most, lm.config.context_length - new)
    if most < 1 or new < 0:
        raise ValueError(
            f"{lm.name}: {most} tokens of the text are read and {new} generated; ask for at least 1 and 0, and for no "
            f"more than {lm.config.context_length} together."
        )
    whole = lm.tokenizer.encode(text, special_tokens=control)
    settings = SamplingSettings(temperature=0, seed=0)
    if len(whole.ids) <= most:
        return Side(model=lm, text=text, control=control, settings=settings, max_new_tokens=new)
    end = whole.offsets[most - 1][1]
    print(f"{lm.name}: the first {most:,} of {len(whole.ids):,} tokens are read.", file=sys.stderr)
    return Side(model=lm, text=text[:end], control=control, settings=settings, max_new_tokens=new)


def _print(found: Comparison, worst: int) -> None:
    print(f"A  {found.a.name}\nB  {found.b.name}\n")
    for each in found.findings:
        mark = {True: "same", False: "differ", None: "not told"}[each.same]
        print(f"{each.stage:9}{mark:10}{each.note}")
    print(f"\nFirst difference: {found.first_difference or 'none'}")
    if step := found.parts_in:
        print(f"In the model first after {step.name}, by {step.apart:.2g} of its norm.")
    if not found.places:
        return
    apart = found.divergence
    rows = [
        ("KL(A‖B), bits", apart.kl_ab.mean(), apart.kl_ab.max()),
        ("KL(B‖A), bits", apart.kl_ba.mean(), apart.kl_ba.max()),
        ("total variation", apart.total_variation.mean(), apart.total_variation.max()),
    ]
    print(f"\n{len(apart)} positions{'':10}{'mean':>12}{'largest':>12}")
    for name, mean, largest in rows:
        print(f"{name:22}{mean:>12.6f}{largest:>12.6f}")
    print(f"{'other first token':22}{apart.flips.mean():>12.2%}")
    if not found.same_vocabulary:
        covered = f"{apart.covered_a.mean():.1%} of A's probability, {apart.covered_b.mean():.1%} of B's"
        print(f"Two vocabularies: over the tokens both have, {covered}.")
    if worst > 0:
        print(f"\n{'position':>8}  {'KL(A‖B)':>9}  {'rank':>5}  {'after':{_SHOWN}}  A's first -> B's first")
    for index in found.worst(worst):
        i, _j = found.places[index]
        after = _token(found.a.tokens[i]) if found.a.tokens and i < len(found.a.tokens) else ""
        first_ids = (found.a, apart.first_a[index]), (found.b, apart.first_b[index])
        firsts = [_token(found.token(run, int(token_id))) for run, token_id in first_ids]
        print(f"{i:>8}  {apart.kl_ab[index]:>9.5f}  {apart.rank[index]:>5}  {after:{_SHOWN}}  {' -> '.join(firsts)}")


def _print_parts(a: LanguageModel, b: LanguageModel, found: Comparison) -> None:
    assert found.a.ids is not None
    print(f"\n{'B with tensors of A':34}{'KL(A‖B)':>12}{'gone':>10}")
    for swap in swaps(a, b, found.a.ids):
        where = swap.kind or "all tensors"
        where += f" in block {swap.block}" if swap.block is not None else ""
        gone = f"{swap.gone:.1%}" if swap.gone == swap.gone else ""
        print(f"{where:34}{swap.kl:>12.6f}{gone:>10}", flush=True)


def _token(token: bytes) -> str:
    return repr(token.decode(errors="backslashreplace"))[:_SHOWN]


if __name__ == "__main__":
    sys.exit(main())
