"""The session a page works in: model, prompt, tokens, logits, trace, and what of these is kept for all sessions.

A page asks for what it needs and gets it for the prompt and model chosen in the bar above it:

    encoding = session.require_tokens(2)      # stops the page with a sentence when there are fewer
    logits = session.logits()                 # [S, V], shared: never changed in place
    pattern = session.trace()["blocks.0.attn.pattern"]

Where values live, and how they get into the address, is told in `link.py`; pages use the widgets of `widgets.py`.
"""

from __future__ import annotations

import gc
import logging
import math
import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

import streamlit as st
import torch
from torch import Tensor

import lmcore
from lmcore import LanguageModel, Trace
from lmcore.corpus import Truth
from lmcore.loading import Doing, LoadingCancelled, Progress, built_in
from lmcore.loading import model_name as name_in_parts
from lmcore.memory import SharedLimit
from lmcore.tokenizer import Encoding, Tokenizer
from pages.common import conversation, engines, link, served_conversation
from pages.common.forward import LARGEST_PASS, ForwardPasses, longest_traced
from pages.common.models import Loading, Models
from pages.common.shared import shared
from pages.common.text import _, markdown_literal, ngettext, readable, visible

MEMORY_VARIABLE = "GLASS_BOX_LM_MEMORY"
"""The environment variable that says how many GiB are kept in memory: models, and what sessions generate with."""

MAX_CHARACTERS = 4000  # longer prompts are refused before they are split into tokens
MAX_CACHE_BYTES = 256 * 2**20  # of passes, for all sessions together
_SESSIONS_SHARE = 8  # one part in so many of what is kept in memory is that of generations, the rest the models'
_FITS_ALWAYS = 128  # tokens, with any model that one machine runs: for them no room is measured
_SHOWN = "session.shown"  # the name of the model that was shown last


@shared()
def _models() -> Models:
    torch.set_num_threads(min(2, os.cpu_count() or 1))
    # A thread that computes a token waits for Python's lock at each layer: another's turn is a millisecond, not five.
    sys.setswitchinterval(0.001)
    return Models(_load, models_budget(), loaded=leave_out_of_collections)


def leave_out_of_collections() -> None:
    """Say that what is in memory now stays: it need not be walked whenever garbage is collected."""
    gc.collect()
    gc.freeze()


def _load(name: str, said: Progress) -> LanguageModel:
    return lmcore.load(name, progress=said)


def memory_budget() -> int:
    """Return the bytes that are kept in memory: what the operator allows, or half of the machine's memory.

    Raises:
        ValueError: when the environment variable is no positive number.
    """
    given = os.environ.get(MEMORY_VARIABLE)
    if given is None:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2 if hasattr(os, "sysconf") else 4 * 2**30
    try:
        budget = float(given)
    except ValueError:
        budget = math.nan
    if not 0 < budget < math.inf:
        raise ValueError(f"{MEMORY_VARIABLE} must be a positive number of GiB, such as 4, got {given!r}.")
    return int(budget * 2**30)


def models_budget() -> int:
    """Return the bytes of weights that are kept in memory."""
    return memory_budget() - kept().max_bytes


@shared()
def kept() -> SharedLimit:
    """Return the limit that the generations of all sessions share for logits and KV caches, used under the lock."""
    return SharedLimit(memory_budget() // _SESSIONS_SHARE)


@shared()
def _passes() -> ForwardPasses:
    return ForwardPasses(MAX_CACHE_BYTES)


@shared(entries=512)
def _encode(name: str, text: str, rendered: bool, _tokenizer: Tokenizer) -> Encoding:
    if rendered:
        return _tokenizer.encode(conversation.RenderedText(text), special_tokens=True, add_first=False)
    return _tokenizer.encode(text)


@shared(entries=64)
def _longest(name: str, _lm: LanguageModel) -> int:
    with forward_lock():
        return longest_traced(_lm, LARGEST_PASS)


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

    While it is loaded the page shows how far that is, and can stop it. When it cannot be loaded the page says so
    and stops: no number is shown without its model.
    """
    name = name or model_name()
    lm = _models().get(name)
    if lm is None:
        lm = _wait_for(name)
    if name == model_name():
        st.session_state[_SHOWN] = name
    return lm


def _wait_for(name: str) -> LanguageModel:
    known = available_models().get(name_in_parts(name).bare)
    if known is not None and not known.installed:
        _say_not_installed(known)
    if name in engines.names():
        engines.needs_a_local_model(name)
    place = st.empty()
    while True:
        loading = _models().start(name)
        if not loading.wait(0.3):
            with place.container(key=f"loading.{name}"):
                bar = st.progress(0.0)
                if name == model_name():
                    st.button(_("Stop loading"), key="loading.stop", on_click=_stop_loading, args=(name, loading))
            while not loading.wait(0.1):
                bar.progress(loading.share, doing(name, loading.what))
            place.empty()
        if loading.model is not None:
            return loading.model
        if not isinstance(loading.error, LoadingCancelled):  # which another session may have wished
            message = _("The model {name} could not be loaded, so nothing is shown.").format(name=_shown(name))
            _say_broken(message, loading.error)


def _stop_loading(name: str, loading: Loading) -> None:
    """Want the model no more, and go back to the one shown before."""
    loading.cancel()
    st.session_state["model"] = st.session_state.get(_SHOWN, next(iter(available_models())))
    st.toast(_("Loading {name} was stopped.").format(name=name))


def doing(name: str, what: Doing | None) -> str:
    """Return what a loading is doing, in the reader's language."""
    sentences = {
        None: _("Loading {name}"),
        Doing.CHECKING_COPY: _("{name}: checking the copy from last time"),
        Doing.CHECKING_FILE: _("{name}: checking the file"),
        Doing.DOWNLOADING: _("{name}: downloading"),
        Doing.READING_TOKENIZER: _("{name}: reading the tokenizer"),
        Doing.READING_WEIGHTS: _("{name}: reading the weights"),
        Doing.ROUNDING_WEIGHTS: _("{name}: quantising the weights"),
        Doing.KEEPING_COPY: _("{name}: saving a copy that loads faster next time"),
    }
    return sentences[what].format(name=_shown(name))


def _shown(name: str) -> str:
    """A model's name as Markdown: a folder may be called anything."""
    return markdown_literal(visible(name))


def prompt() -> str:
    """Return the prompt's text: what the reader typed, or what a chat template writes for the conversation.

    Where none writes it, the text is empty.
    """
    if not conversation.is_on():
        return st.session_state["prompt"]
    engine = engines.chosen()
    if engine is None:
        return conversation.prompt_text(language_model())
    try:
        return served_conversation.text_for(engine)
    except ValueError:
        return ""


def beginning() -> str:
    """Return as much of the prompt as is read of one, for views that go on without the rest."""
    text = prompt()
    return type(text)(text[:MAX_CHARACTERS])


def encoding(text: str | None = None, name: str | None = None) -> Encoding:
    """Return the prompt, or another text, in tokens of the chosen model's tokenizer, or another one's by name."""
    text = prompt() if text is None else text
    return _encode(
        name=name or model_name(),
        text=str.__str__(text),
        rendered=isinstance(text, conversation.RenderedText),
        _tokenizer=language_model(name).tokenizer,
    )  # by keywords: Streamlit would look up the names of arguments at every call


def logits(ids: Sequence[int] | None = None, name: str | None = None) -> Tensor:
    """Return the logits [position, vocab] for the prompt, or for other ids or another model.

    The tensor is shared between sessions: never change it in place.
    """
    return _forward(ids, name, traced=False).logits


def forward() -> Callable[[LanguageModel, tuple[int, ...]], Tensor]:
    """Return what runs a model over ids, or finds the pass of another session, in whatever thread it is called."""
    passes = _passes()
    return lambda lm, ids: passes.get(lm.name, ids, False, lambda: lm).logits


def trace(ids: Sequence[int] | None = None, name: str | None = None) -> Trace:
    """Return every intermediate for the prompt, or for other ids or another model; shared, never changed in place."""
    return _forward(ids, name, traced=True).trace


def grammar(lm: LanguageModel) -> Truth | None:
    """Return the small world's own distribution for a model that learned it, quantised or not, else None."""
    if not built_in(lm.name):
        return None
    # One tokenizer for all of them: the scenes are encoded once for each tokenizer object.
    return Truth(language_model(lmcore.builtin.DEFAULT).tokenizer)


def forward_lock():  # noqa: ANN201 - threading.RLock is a function, not a type
    """Return the lock that lets one forward pass run at a time: hold it around each step of a generation."""
    return _passes().lock


def require_tokens(minimum: int = 1) -> Encoding:
    """Return the prompt's encoding, or say plainly what is missing or too much, and stop the page."""
    if conversation.is_on() and (why := conversation.refusal(language_model())):
        st.text(readable(why))  # a template says what it likes
        link.stop()
    text = prompt()
    if len(text) > MAX_CHARACTERS:
        _stop(
            _("This prompt has {n:,} characters; the limit is {limit:,}. Shorten it above: the text is kept."),
            n=len(text),
            limit=MAX_CHARACTERS,
        )
    found = encoding()
    if len(found.ids) < minimum:
        needed = ngettext("This page needs at least {n} token.", "This page needs at least {n} tokens.", minimum)
        _stop(needed + " " + _("Type a prompt above, or choose an example."), n=minimum)
    lm = language_model()
    if len(found.ids) > lm.config.context_length:
        _stop(
            _(
                "This prompt has {n:,} tokens; the context of {name} ends at {limit:,}. "
                "Shorten it above, or choose another model: the text is kept."
            ),
            n=len(found.ids),
            name=model_name(),
            limit=lm.config.context_length,
        )
    if len(found.ids) > _FITS_ALWAYS and len(found.ids) > (limit := _longest(model_name(), lm)):
        _stop(
            _(
                "This prompt has {n:,} tokens. With {name}, everything computed for them would need more than "
                "{size:.0f} GB; {limit:,} tokens fit. Shorten it above, or choose a smaller model: the text is "
                "kept."
            ),
            n=len(found.ids),
            name=model_name(),
            size=LARGEST_PASS / 1e9,
            limit=limit,
        )
    return found


def _forward(ids: Sequence[int] | None, name: str | None, traced: bool):  # noqa: ANN202
    name = name or model_name()
    wanted = tuple(encoding().ids if ids is None else map(int, ids))
    lm = language_model(name)  # not under the lock of the passes: it may take a while
    return _passes().get(name, wanted, traced, lambda: lm)


def _stop(message: str, **values: object) -> NoReturn:
    st.info(message.format(**values))
    link.stop()


def _say_not_installed(model: lmcore.AvailableModel) -> NoReturn:
    st.info(
        _(
            "{name} is not installed here. This command installs it ({size} MB, {licence}). Then load this page again."
        ).format(name=model.name, size=f"{model.size / 1e6:,.0f}", licence=model.licence)
    )
    st.code(model.install, language="shell")
    link.stop()


def _say_broken(message: str, error: BaseException | None) -> NoReturn:
    logging.getLogger(__name__).error(message, exc_info=error)
    st.error(message)
    st.code(str(error), language=None, wrap_lines=True)
    link.stop()
