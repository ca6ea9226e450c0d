"""Weights before and after quantisation: a piece of a row, and a whole matrix."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from torch import Tensor

from lmcore.analysis.quantisation.weights import (
    OnLevels,
    Outliers,
    QuantisedPiece,
    on_levels,
    outliers,
    piece_at,
    relative_errors,
    some_rows,
)
from lmcore.quantisation import KINDS, Kind
from pages.common import page
from pages.common.shared import shared
from pages.common.text import _
from pages.figures import theme
from pages.figures.compare import quantisation as figures


def show_piece(matrix: Tensor, kind: Kind, row: int, number: int, picture: DeltaGenerator) -> None:
    """Draw a piece of a row before and after, and below the controls its block's equation and its numbers."""
    piece = piece_at(matrix, kind, row, number)
    with picture:
        if piece is None:
            _does_not_fit(matrix)
            return
        _picture(piece, kind)
    st.markdown(_equation(piece))
    st.caption(_numbers(piece))
    page.numbers_table(
        pd.DataFrame(
            {
                _("place in the row"): np.arange(piece.first, piece.first + len(piece.before)),
                "w": piece.before,
                "q": piece.codes,
                "w′": piece.after,
                "w′ − w": piece.errors,
            }
        ),
        "quantisation",
        {"w": "%.6f", "w′": "%.6f", "w′ − w": "%.6f"},
    )


def _picture(piece: QuantisedPiece, kind: Kind) -> None:
    _say_fallback(kind, piece.kind)
    levels = piece.scale * np.array(piece.kind.levels) + (piece.minimum or 0.0)
    page.figure(
        figures.piece_of_weights(
            piece.before,
            piece.after,
            piece.codes.tolist(),
            levels.tolist(),
            first=piece.first,
            names=(_("w, before"), _("w′ = d·q + m, after") if piece.kind.has_minimum else _("w′ = d·q, after")),
            x_title=_("q of each weight"),
            y_title=_("weight"),
        ),
        "quantisation.weights",
        _(
            "{n} weights of a row before and after: each moves to the nearest level that its block has, and only the "
            "level's number q is kept."
        ).format(n=len(piece.before)),
    )


def _equation(piece: QuantisedPiece) -> str:
    """Return the block's equation with the numbers of its weight of the largest magnitude."""
    at = int(np.abs(piece.before).argmax())
    added = "" if piece.minimum is None else f" + ({piece.minimum:.6f})"
    rule = piece.kind.rule
    return (
        rf"${rule}$, $\quad w' = d\,q{' + m' if piece.minimum is not None else ''}$: "
        rf"$\;{piece.before[at]:.6f} \to {piece.scale:.6f} \cdot ({piece.codes[at]}){added} = {piece.after[at]:.6f}$"
    )


def _numbers(piece: QuantisedPiece) -> str:
    kind = piece.kind
    block = (
        _("The whole row shares one scale d.")
        if kind.block is None
        else _("Each {n} weights of a row share one scale d.").format(n=kind.block)
        if not kind.has_minimum
        else _("Each {n} weights of a row share one scale d and one minimum m.").format(n=kind.block)
    )
    return (
        block
        + " "
        + _("Largest error: {largest}, which is {share} of d. Relative error |w′ − w| / |w|: {relative} %.")
        .format(
            largest=f"{np.abs(piece.errors).max():.6f}",
            share=f"{np.abs(piece.errors).max() / abs(piece.scale):.2f}" if piece.scale else "0",
            relative=f"{100 * piece.relative_error:.2f}",
        )
        .replace(" %", "\u00a0%")  # no line begins with a %
    )


@shared(entries=32)
def _measured(
    model: str, name: str, kind: str, k: float, _matrix: Tensor
) -> tuple[OnLevels | None, Outliers, dict[str, float]]:
    return on_levels(_matrix, KINDS[kind]), outliers(_matrix, k), relative_errors(_matrix)


def show_matrix(model: str, name: str, kind: Kind, k: float, matrix: Tensor, picture: DeltaGenerator) -> None:
    """Draw where the weights of a matrix lie on the levels of a kind, and its outliers beyond k sigma."""
    found, far, errors = _measured(model, name, kind.name, k, matrix)
    with picture:
        if found is None:
            _does_not_fit(matrix)
            return
        _on_levels(found, kind)
    _outliers(far, k, matrix)
    page.numbers_table(
        pd.DataFrame(
            {
                _("kind"): list(errors),
                _("bits per weight"): [KINDS[each].bits_per_weight(matrix.shape[-1]) for each in errors],
                _("relative error"): list(errors.values()),
            }
        ),
        "quantisation-matrix",
        {_("relative error"): "probability", _("bits per weight"): "%.3f"},
    )


def _on_levels(found: OnLevels, kind: Kind) -> None:
    _say_fallback(kind, found.kind)
    page.figure(
        figures.on_levels(
            found.edges,
            found.shares,
            found.kind.levels,
            clipped=_("clipped"),
            x_title=_("(w − m) / d of each weight's own block") if found.kind.has_minimum else _("w / d of its block"),
            y_title=_("share of the weights"),
        ),
        "quantisation.levels",
        _(
            "Where the weights lie between the levels, which are the lines: each goes to the nearest. Relative error "
            "of the matrix: {error} %."
        ).format(error=f"{100 * found.relative_error:.2f}"),
    )


def _outliers(far: Outliers, k: float, matrix: Tensor) -> None:
    page.figure(
        figures.in_sigmas(
            far.edges,
            far.shares,
            k,
            names=(_("this matrix"), _("a normal distribution")),
            titles=(_("distance from the mean in σ"), _("share of the weights")),
        ),
        "quantisation.outliers",
        _(
            "{share} of the weights lie beyond {k} σ; of a normal distribution it would be {normal}. The largest lies "
            "at {largest} σ. One outlier makes the scale of its block larger, and the other weights coarser."
        ).format(
            share=theme.fmt_probability(far.share),
            k=f"{k:g}",
            normal=theme.fmt_probability(far.normal_share),
            largest=f"{far.largest:.1f}",
        ),
    )
    sampled = len(some_rows(matrix)) < matrix.flatten(0, -2).shape[0]
    for shares, sentence in (
        (() if sampled else far.by_row, _("Rows with the most outliers: {list}.")),
        (far.by_column, _("Columns with the most outliers: {list}.")),
    ):
        most = [i for i in np.argsort(-np.asarray(shares), kind="stable")[:5].tolist() if shares[i] > 0]
        if most:
            st.caption(sentence.format(list=", ".join(f"{i} ({theme.fmt_probability(shares[i])})" for i in most)))
    if sampled:
        st.caption(_("The matrix is large: evenly spaced rows stand for all."))


def _say_fallback(wanted: Kind, kind: Kind) -> None:
    if kind is not wanted:
        st.caption(
            _(
                "{wanted} takes {n} weights at a time, and rows of this matrix are no multiple of that: llama.cpp "
                "keeps it as {kind}."
            ).format(wanted=wanted.name, n=wanted.block, kind=kind.name)
        )


def _does_not_fit(matrix: Tensor) -> None:
    st.info(
        _(
            "A row of this matrix has {n} weights, which no block fits. llama.cpp keeps such a matrix in float16, and "
            "so does the model of this name."
        ).format(n=matrix.shape[-1])
    )
