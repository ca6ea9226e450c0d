"""How far quantisation moves the hidden states, block by block."""

from __future__ import annotations

import numpy as np
import pandas as pd
from streamlit.delta_generator import DeltaGenerator

from lmcore import LanguageModel
from lmcore.analysis.quantisation import hidden
from lmcore.quantisation import Kind
from pages.common import page, session
from pages.common.models import n_bytes
from pages.common.shared import shared
from pages.common.text import _, markdown_literal, visible
from pages.figures.compare import quantisation as figures

CODE = """
import lmcore
from lmcore.analysis.quantisation.hidden import relative_errors

lm, quantised = lmcore.load({name!r}), lmcore.load({variant!r})
for place, errors in relative_errors(lm, quantised, lm.tokenizer.encode({prompt!r}).ids).items():
    print(place, errors.mean().item(), errors.max().item())
"""


@shared(entries=32)
def _errors(base: str, variant: str, ids: tuple[int, ...], _lms: tuple[LanguageModel, ...]) -> dict[str, np.ndarray]:
    with session.forward_lock():
        return {name: each.numpy() for name, each in hidden.relative_errors(_lms[0], _lms[1], ids).items()}


def show(lm: LanguageModel, kind: Kind, picture: DeltaGenerator) -> None:
    """Draw the errors of the hidden states of the prompt."""
    found = session.require_tokens()
    variant = f"{lm.name}:{kind.name}"
    if 2 * n_bytes(lm) > session.models_budget():
        picture.info(
            _("{name} does not fit this server's memory twice, and its quantised copy is a second one.").format(
                name=markdown_literal(visible(lm.name))
            )
        )
        return
    with picture:
        other = session.language_model(variant)
        errors = _errors(lm.name, variant, tuple(found.ids), (lm, other))
    places = [_("embedding"), *(str(i) for i in range(lm.config.n_layers)), _("what the head reads")]
    mean = [each.mean() for each in errors.values()]
    largest = [each.max() for each in errors.values()]
    with picture:
        page.figure(
            figures.through_blocks(
                places,
                {_("mean over the positions"): mean, _("largest"): largest},
                x_title=_("after block"),
                y_title="|h′ − h| / |h|",
            ),
            "quantisation.hidden",
            _(
                "How far the hidden states h′ of {variant} are from those of the model itself, relative to their "
                "length: after the embedding, after each block, and what the head reads."
            ).format(variant=markdown_literal(visible(variant))),
        )
    page.numbers_table(
        pd.DataFrame({_("after block"): places, _("mean"): mean, _("largest"): largest}),
        "quantisation-hidden",
        {_("mean"): "probability", _("largest"): "probability"},
    )
    page.snippet(CODE.format(name=lm.name, variant=variant, prompt=found.text))
