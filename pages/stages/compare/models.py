"""Which model each side is, and whether the two fit the memory."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from lmcore import LanguageModel
from lmcore.loading import DTYPES, model_name
from lmcore.quantisation import KINDS
from pages.common import engines, link, session, widgets
from pages.common.models import n_bytes
from pages.common.shared import shared
from pages.common.text import _, markdown_literal, visible

BY_DEFAULT = "usual"
"""In place of a name: for A the explorer's model, for B that of A in bfloat16."""


def of_a() -> str:
    """Let the reader choose A's model by name: the explorer's to begin with."""
    own = session.model_name()
    title = _("{name} (as above)").format(name=own)
    name = widgets.select(
        "compare.a",
        _("Model of A"),
        (BY_DEFAULT, *_names(), *engines.names()),
        BY_DEFAULT,
        format_func=lambda name: title if name == BY_DEFAULT else name,
        help=_("A reads the prompt of this explorer, and draws by its sampler and seed."),
    )
    return own if name == BY_DEFAULT else _with_weights(name, "compare.a_weights", _("Weights of A as"))


def of_b(a: str) -> str:
    """Let the reader choose B's model by name: that of A in bfloat16 to begin with, or A's unquantised."""
    names = (*_names(), *engines.names())
    given = model_name(a)
    usual = names[0] if a in engines.names() else f"{given}:bfloat16" if given.plain else given.bare
    asked = model_name(st.session_state.get("compare.model") or link.text_given("compare.model") or BY_DEFAULT)
    variant = (str(asked),) if asked.bare in names and str(asked) not in names else ()  # a link has it
    # No model's name: two options of one label are the same to a browser.
    title = _("{name} (goes with A)").format(name=usual)
    name = widgets.select(
        "compare.model",
        _("Model of B"),
        (BY_DEFAULT, *names, *variant),
        BY_DEFAULT,
        format_func=lambda name: title if name == BY_DEFAULT else name,
    )
    return _with_weights(usual if name == BY_DEFAULT else name, "compare.weights", _("Weights of B as"))


def _with_weights(name: str, key: str, label: str) -> str:
    """Let the reader choose in which numbers a model's weights are, where the name does not say it."""
    if name in engines.names() or not model_name(name).plain:
        return name
    kind = widgets.select(key, label, tuple(dict.fromkeys(("float32", *DTYPES, *KINDS))), "float32")
    return name if kind == "float32" else f"{name}:{kind}"


def _names() -> list[str]:
    return [name for name, model in session.available_models().items() if model.installed]


@shared()
def _sizes() -> dict[str, int]:
    """Bytes of the weights of models that were compared, by name."""
    return {}


def beside(others: Sequence[str], name: str) -> LanguageModel:
    """Return a model that is used with others; where they do not fit the memory together, say so and stop before one
    drives out another."""
    budget, sizes = session.models_budget(), _sizes()
    together = [each for each in dict.fromkeys((*others, name)) if each not in engines.names()]

    def needed() -> int:
        return sum(sizes.get(each, 0) for each in together)

    if name not in sizes or needed() <= budget:
        sizes |= {each: n_bytes(session.language_model(each)) for each in together}
        if needed() <= budget:
            return session.language_model(name)
    st.info(
        _(
            "{names} need {need} GB together, and this server keeps {budget} GB of models in memory. Choose a smaller "
            "one of them."
        ).format(
            names=", ".join(markdown_literal(visible(each)) for each in together),
            need=f"{needed() / 1e9:.2f}",
            budget=f"{budget / 1e9:.2f}",
        )
    )
    link.stop()
