"""The session a page works in: model, prompt, tokens, logits, trace. The only caching is here.

A page asks for what it needs and gets it for the prompt and model chosen in the bar above it:

    encoding = session.require_tokens(2)      # stops the page with a sentence when there are fewer
    logits = session.logits()                 # [S, V], shared: never changed in place
    pattern = session.trace()["blocks.0.attn.pattern"]

Where values live, and how they get into the address, is told in `link.py`; pages use the widgets of `widgets.py`.
"""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Sequence
from typing import NoReturn

import streamlit as st
import torch
from torch import Tensor

import lmcore
from lmcore import LanguageModel, Trace
from lmcore.tokenizer import Encoding
from pages.common import link
from pages.common.forward import ForwardPasses
from pages.common.text import _, ngettext

MAX_CHARACTERS = 4000  # longer prompts are refused before they are split into tokens
_MAX_CACHE_BYTES = 256 * 2**20


@st.cache_resource(show_spinner="Loading the model · 正在载入模型", max_entries=16)
def _load(name: str) -> LanguageModel:
    torch.set_num_threads(min(2, os.cpu_count() or 1))
    lm = lmcore.load(name)
    # Streamlit collects garbage after every run; what is loaded here stays, and need not be walked each time.
    gc.collect()
    gc.freeze()
    return lm


@st.cache_resource(show_spinner=False)
def _passes() -> ForwardPasses:
    return ForwardPasses(_MAX_CACHE_BYTES)


@st.cache_resource(show_spinner=False, max_entries=512)
def _encode(name: str, text: str) -> Encoding:
    return _load(name).tokenizer.encode(text)


def available_models() -> dict[str, lmcore.AvailableModel]:
    """Return the models that can be chosen by name, the default first, and those that could be installed."""
    try:
        return {model.name: model for model in lmcore.available()}
    except Exception as error:
        _say_broken(_("The list of models could not be read, so nothing is shown."), error)


def model_name() -> str:
    """Return the name of the chosen model."""
    return st.session_state["model"]


def language_model(name: str | None = None) -> LanguageModel:
    """Return the chosen model, or another one by name; one copy in memory serves every session.

    When it cannot be loaded the page says so and stops: no number is shown without its model.
    """
    name = name or model_name()
    try:
        return _load(name)
    except Exception as error:
        _say_broken(_("The model {name} could not be loaded, so nothing is shown.").format(name=name), error)


def prompt() -> str:
    """Return the prompt's text."""
    return st.session_state["prompt"]


def encoding(text: str | None = None) -> Encoding:
    """Return the prompt, or another text, in tokens of the chosen model's tokenizer."""
    language_model()
    return _encode(model_name(), prompt() if text is None else text)


def logits(ids: Sequence[int] | None = None, name: str | None = None) -> Tensor:
    """Return the logits [position, vocab] for the prompt, or for other ids or another model.

    The tensor is shared between sessions: never change it in place.
    """
    return _forward(ids, name, traced=False).logits


def trace(ids: Sequence[int] | None = None, name: str | None = None) -> Trace:
    """Return every intermediate for the prompt, or for other ids or another model; shared, never changed in place."""
    return _forward(ids, name, traced=True).trace


def forward_lock():  # noqa: ANN201 - threading.RLock is a function, not a type
    """Return the lock that lets one forward pass run at a time: hold it around each step of a generation."""
    return _passes().lock


def require_tokens(minimum: int = 1) -> Encoding:
    """Return the prompt's encoding, or say plainly what is missing or too much, and stop the page."""
    text = prompt()
    if len(text) > MAX_CHARACTERS:
        _stop(
            _("This prompt has {n:,} characters; the limit is {limit:,}. Shorten it above: the text is kept."),
            n=len(text),
            limit=MAX_CHARACTERS,
        )
    found = encoding()
    limit = language_model().config.context_length
    if len(found.ids) < minimum:
        needed = ngettext("This page needs at least {n} token.", "This page needs at least {n} tokens.", minimum)
        _stop(needed + " " + _("Type a prompt above, or choose an example."), n=minimum)
    if len(found.ids) > limit:
        _stop(
            _(
                "This prompt has {n:,} tokens; the context of {name} ends at {limit:,}. "
                "Shorten it above, or choose another model: the text is kept."
            ),
            n=len(found.ids),
            name=model_name(),
            limit=limit,
        )
    return found


def _forward(ids: Sequence[int] | None, name: str | None, traced: bool):  # noqa: ANN202
    name = name or model_name()
    wanted = tuple(encoding().ids if ids is None else map(int, ids))
    return _passes().get(name, wanted, traced, lambda: language_model(name))


def _stop(message: str, **values: object) -> NoReturn:
    st.info(message.format(**values))
    link.stop()


def _say_broken(message: str, error: Exception) -> NoReturn:
    logging.getLogger(__name__).error(message, exc_info=error)
    st.error(message)
    st.code(str(error), language=None, wrap_lines=True)
    link.stop()
