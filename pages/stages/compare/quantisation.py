"""Quantisation under glass: a piece of a matrix, the whole of it, the hidden states, and what it all costs."""

from __future__ import annotations

import streamlit as st

from lmcore import LanguageModel
from lmcore.analysis.quantisation.weights import (
    matrices,
    n_pieces,
)
from lmcore.loading import model_name
from lmcore.quantisation import KINDS, Kind, bits_per_weight
from pages.common import page, session, widgets
from pages.common.text import _, markdown_literal, visible
from pages.stages.compare import quantisation_costs, quantisation_hidden, quantisation_weights

CODE = """
import lmcore
from lmcore.analysis.quantisation.weights import matrices, on_levels, outliers, piece_at
from lmcore.quantisation import KINDS

lm = lmcore.load({name!r})
matrix, kind = matrices(lm.model)[{matrix!r}], KINDS[{kind!r}]
piece = piece_at(matrix, kind, row={row}, piece={piece})
for w, q, read_back in zip(piece.before, piece.codes, piece.after):
    print(f"{{w:.6f}} {{q}} {{read_back:.6f}}")
print(piece.scale, piece.minimum, piece.relative_error)
print(on_levels(matrix, kind).used, outliers(matrix, k=4).share)
quantised = lmcore.load({variant!r})                    # a model with these numbers
"""
_BLOCKS = "blocks."


def show() -> None:
    """Draw the view."""
    lm = session.language_model(model_name(session.model_name()).bare)
    controls, picture = page.workbench()
    with controls:
        look = widgets.select(
            "quantisation.look",
            _("Look at"),
            ("piece", "matrix", "hidden", "cost"),
            "piece",
            format_func={
                "piece": _("32 weights"),
                "matrix": _("A whole matrix"),
                "hidden": _("The hidden states"),
                "cost": _("Size and cost"),
            }.__getitem__,
        )
    if look == "cost":
        quantisation_costs.show(lm, controls, picture)
        return
    with controls:
        kind = KINDS[
            widgets.select("quantisation.kind", _("Weights as"), tuple(KINDS), "q4_0", format_func=_kind_title)
        ]
    if look == "hidden":
        quantisation_hidden.show(lm, kind, picture)
        _about(lm, kind)
        return
    with controls:
        name = _matrix_picker(lm)
    matrix = matrices(lm.model)[name]
    if look == "piece":
        with controls:
            n_rows = matrix.flatten(0, -2).shape[0]
            row = widgets.number("quantisation.row", _("Row"), 0, n_rows - 1, 0)
            number = widgets.number("quantisation.piece", _("Piece of the row"), 0, n_pieces(matrix) - 1, 0)
        quantisation_weights.show_piece(matrix, kind, row, number, picture)
    else:
        row = number = 0
        with controls:
            k = widgets.slider("quantisation.sigmas", _("Outliers lie beyond k σ, k ="), 2.0, 10.0, 4.0, step=0.5)
        quantisation_weights.show_matrix(lm.name, name, kind, k, matrix, picture)
    _about(lm, kind)
    page.snippet(
        CODE.format(name=lm.name, matrix=name, kind=kind.name, row=row, piece=number, variant=f"{lm.name}:{kind.name}")
    )


def _kind_title(name: str) -> str:
    kind = KINDS[name]
    if kind.block is None:
        return _("{kind}: 8 bits and a scale for each row").format(kind=name)
    return _("{kind}: {bits} bits a weight").format(kind=name, bits=f"{kind.bits_per_weight(kind.block):.4g}")


def _matrix_picker(lm: LanguageModel) -> str:
    """Let the reader choose a matrix: which one, and of which block."""
    within: dict[str, str] = {}
    for name in matrices(lm.model):
        parts = name.split(".", 2)
        within.setdefault(parts[-1] if name.startswith(_BLOCKS) else name, name)
    chosen = widgets.select("quantisation.matrix", _("Matrix"), tuple(within), "mlp.down")
    if not within[chosen].startswith(_BLOCKS):
        return chosen
    return f"blocks.{widgets.layer_picker()}.{chosen}"


def _about(lm: LanguageModel, kind: Kind) -> None:
    """Say what the whole model would take, and what its file already holds."""
    st.caption(
        _(
            "All matrices of {name} as {kind}, norms and biases left as they are: {bits} bits a weight. This is what "
            "llama.cpp's quantize writes with --pure; without it, it gives some matrices more bits."
        ).format(name=markdown_literal(visible(lm.name)), kind=kind.name, bits=f"{bits_per_weight(lm.model, kind):.3f}")
    )
    kept = [each for each in lm.card.storage if each not in ("F32", "F16", "BF16")]
    if kept:
        st.caption(
            _(
                "The file of this model holds quantised weights already: {kinds}. What is measured here is a second "
                "rounding of those."
            ).format(kinds=", ".join(kept))
        )
    page.follow(
        page.Suggestion(
            _("Open the explorer with {variant}").format(variant=f"{markdown_literal(visible(lm.name))}:{kind.name}"),
            "logits",
            {"model": f"{lm.name}:{kind.name}"},
        )
    )
