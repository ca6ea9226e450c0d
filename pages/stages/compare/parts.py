"""Which part did it? B's tensors are swapped for A's, a few at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
import streamlit as st

from lmcore.compare import Swap
from lmcore.compare.parts import AS_IT_RUNS, EVERYTHING, KV_CACHE, WEIGHTS, check_shapes, count_swaps, swaps
from pages.common import link, page, widgets
from pages.common.text import _, readable, visible
from pages.figures import theme
from pages.figures.compare import apart as figures
from pages.stages.compare.sides import Pair, choose
from pages.stages.generation import jobs

_NAME = "compare.parts"
_TOKENS, _MOST = 32, 128
_WHOLE = (AS_IT_RUNS, WEIGHTS, EVERYTHING)

CODE = """
import lmcore
from lmcore.compare import swaps

a, b = lmcore.load({a!r}), lmcore.load({b!r})
for swap in swaps(a, b, {ids!r}):
    print(swap.kind, swap.block, swap.kl, swap.gone)
"""


def show() -> None:
    """Draw the view."""
    controls, picture = page.workbench()
    with controls:
        pair = choose()
        if pair.local is None:
            st.info(_("Tensors can be swapped between two local models."))
            link.stop()
        a, b = pair.local
        try:
            check_shapes(a, b)
        except ValueError as error:
            st.info(_("Only tensors of two models of one shape can be swapped."))
            st.text(readable(str(error)))
            link.stop()
        ids = tuple(pair.a.ids or ())  # type: ignore[union-attr]
        most = min(_MOST, len(ids))
        n = widgets.slider("compare.tokens", _("Tokens of A's text"), 1, most, min(_TOKENS, most))
        names = {"kind": _("kind"), "block": _("block"), "both": _("kind and block")}
        by = widgets.choice("compare.by", _("Swapped together"), tuple(names), "kind", format_func=names.__getitem__)
        question = (a.name, b.name, ids[:n])
        small = all(lm.config.d_model <= 256 for lm in (a, b))
        jobs.button(_NAME, question, _("Swap the tensors"), lambda: _all_so_far(pair, ids[:n]), at_once=small)
    with picture:
        if jobs.find(_NAME, question) is None:
            st.info(
                _("{n} passes of the model, each with other tensors of B replaced by A's. Press the button.").format(
                    n=count_swaps(a)
                )
            )
        total = count_swaps(a)
        jobs.show(_NAME, question, lambda found: len(found) / total, lambda found, done: _draw(found, by, done))
    page.snippet(CODE.format(a=a.name, b=b.name, ids=list(ids[:n])))


def _all_so_far(pair: Pair, ids: tuple[int, ...]) -> Iterator[tuple[Swap, ...]]:
    assert pair.local is not None
    found: list[Swap] = []
    for swap in swaps(*pair.local, ids):
        found.append(swap)
        yield tuple(found)


def _draw(found: tuple[Swap, ...], by: str, done: bool) -> None:
    known = {(swap.kind, swap.block): swap for swap in found}
    whole = known.get((WEIGHTS, None))
    if whole is None:
        return
    st.markdown(
        _(
            "B is {as_it_runs} bits from A as it runs. Its weights and the precision of its KV cache, in A's code and "
            "arithmetic, make {weights} bits; with all of A's {nothing} are left."
        ).format(
            as_it_runs=f"**{known[AS_IT_RUNS, None].kl:.4g}**",
            weights=f"**{whole.kl:.4g}**",
            nothing=f"{known[EVERYTHING, None].kl:g}" if (EVERYTHING, None) in known else "…",
        )
    )
    if whole.kl == 0:
        st.info(
            _("The weights and the KV cache of the two are the same: what differs is the config or the arithmetic.")
        )
        return
    swapped = [swap for swap in found if swap.kind not in _WHOLE]
    if by == "both":
        _map(swapped)
    else:
        rows = [swap for swap in swapped if (swap.block is None) == (by == "kind")]
        rows = [swap for swap in rows if by == "kind" or not swap.kind]
        if rows:
            page.figure(
                figures.parts(
                    [_named(swap) for swap in rows], [swap.gone for swap in rows], _("share of KL that goes")
                ),
                "compare.parts",
                _(
                    "Bars: how much of KL(A‖B) goes when only these tensors of B are A's, or only the keys and values "
                    "of its KV cache. They need not add up to 100 %; left of 0 the swap makes it larger."
                ),
            )
    if done:
        frame = pd.DataFrame(
            {
                _("Swapped"): [_named(swap) for swap in swapped],
                _("KL(A‖B) left, bits"): [swap.kl for swap in swapped],
                _("Share that goes"): [swap.gone for swap in swapped],
            }
        )
        formats = {_("KL(A‖B) left, bits"): "%.6f", _("Share that goes"): "probability"}
        page.numbers_table(frame, "compare.parts", formats)


def _map(swapped: list[Swap]) -> None:
    cells = {(swap.kind, swap.block): swap.gone for swap in swapped if swap.kind and swap.block is not None}
    if not cells:
        return
    kinds = list(dict.fromkeys(kind for kind, _block in cells))
    blocks = sorted({block for _kind, block in cells if block is not None})
    values = np.array([[cells.get((kind, block), math.nan) for block in blocks] for kind in kinds])
    page.figure(
        theme.heatmap(
            values,
            [_("KV cache") if kind == KV_CACHE else visible(kind) for kind in kinds],
            [str(block) for block in blocks],
            kind="signed",
            row_title=_("tensor"),
            column_title=_("block"),
            value_title=_("share of KL that goes"),
        ),
        "compare.map",
        _("Cells: how much of KL(A‖B) goes when only this part of B is A's. Blue: it becomes larger."),
    )


def _named(swap: Swap) -> str:
    kind = _("KV cache") if swap.kind == KV_CACHE else swap.kind
    return kind if swap.block is None else f"{_('block {n}').format(n=swap.block)} {kind}".strip()
