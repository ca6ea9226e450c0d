"""Engines in the pages: which one is chosen, asking it without holding anybody up, and what went wrong in words.

A page that works in front of an engine says so by beginning with

    if (engine := engines.chosen()) is not None:
        view.show(engine)
        link.stop()

All others ask for `session.language_model()`, which tells the reader that they need a local model.
"""

from __future__ import annotations

import functools
import gc
import logging
import time
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, NoReturn, TypeVar

import pandas as pd
import streamlit as st

from lmcore.engines.config import EngineConfig, configured
from lmcore.engines.errors import EngineError
from lmcore.loading import available
from lmcore.worker import Tell, Worker
from pages.common import link, stages
from pages.common.shared import shared
from pages.common.text import _, readable

if TYPE_CHECKING:
    from lmcore.engines.engine import Engine

T = TypeVar("T")

STAGES = ("tokenization", "logits", "sampling", "generation", "compare")
"""The pages that work in front of an engine."""

_AT_ONCE = 0.3  # seconds in which an answer needs no word that it is waited for


@shared()
def _configured() -> tuple[tuple[EngineConfig, ...], bool]:
    """The operator's engines, and whether their file could be read."""
    try:
        found = configured()
        local = {model.name for model in available()}
        if taken := next((engine.name for engine in found if engine.name in local), None):
            raise ValueError(f"an engine is called {taken!r}, and so is a local model.")
    except ValueError as error:  # the operator's to read: a user cannot mend it
        logging.getLogger(__name__).error("no engines: %s", error)
        return (), False
    return found, True


@shared()
def _engine(config: EngineConfig) -> Engine:
    from lmcore.engines.engine import Engine  # brings in an HTTP library, which nobody needs without an engine

    engine = Engine(config)
    gc.collect()
    gc.freeze()  # as when a model is loaded: it need not be walked whenever garbage is collected
    return engine


@shared()
def _asked() -> dict[Hashable, Worker[None]]:
    """What engines are being asked, for all sessions that wait for the same."""
    return {}


def names() -> tuple[str, ...]:
    """Return the names of the engines."""
    return tuple(config.name for config in _configured()[0])


def broken() -> bool:
    """Whether the operator's file of engines could not be read."""
    return not _configured()[1]


def find(name: str) -> Engine | None:
    """Return an engine by name; None for what is none, such as a local model."""
    return next((_engine(config) for config in _configured()[0] if config.name == name), None)


def chosen() -> Engine | None:
    """Return the engine chosen in the bar; None when it is a local model."""
    return find(st.session_state["model"])


def ask(engine: Engine, question: Hashable, work: Callable[[], T]) -> T:
    """Ask an engine and return its answer, telling the reader that it is waited for.

    Whatever the reader does meanwhile ends the waiting, not the question: who asks the same again joins it. When the
    engine fails, the page says how in one sentence and stops.

    Args:
        engine: which one.
        question: what is asked, the same for the same answer.
        work: asks.
    """
    key = (engine.name, engine.generation, question)
    asking = _asked().get(key)
    if asking is None:
        asking = _asked()[key] = Worker(functools.partial(_run, key, work), name="asking an engine")
    place, since = st.empty(), time.monotonic()
    while not asking.join(_AT_ONCE):
        waited = _("Waiting for {name}: {n} s. Using any control ends the wait.")
        place.caption(waited.format(name=f"**{engine.name}**", n=f"{time.monotonic() - since:.0f}"))
    place.empty()
    if isinstance(asking.error, EngineError):
        say(engine, asking.error)
        link.stop()
    if asking.error is not None:
        raise asking.error
    return asking.result


def _run(key: Hashable, work: Callable[[], T], tell: Tell[None]) -> T:
    try:
        return work()
    finally:
        _asked().pop(key, None)


def say(engine: Engine, error: EngineError) -> None:
    """Tell the reader what went wrong, in one sentence and in the server's own words where it has any."""
    sentences = {
        "no key": _("{name} needs a key that this explorer does not have. Its operator has to set it."),
        "unreachable": _("{name} cannot be reached now. Nothing is lost; try again later."),
        "slow": _("{name} has not answered for {seconds} seconds. Nothing is lost; try again."),
        "key refused": _("{name} refuses the explorer's key. Its operator has to fix this."),
        "no such model": _("{name} does not have the model named in its configuration."),
        "busy": _("{name} is too busy: several requests were refused. Try again later."),
        "failing": _("{name} failed on this request. Nothing is lost; try again."),
        "broken off": _("{name} stopped in the middle of its answer. What had arrived is kept."),
        "context too long": _("This text is longer than {name} can read. Shorten it above: the text is kept."),
        "unreadable": _("The answer of {name} does not follow its interface."),
        "no log-probabilities": _("{name} returns no log-probabilities, so there is nothing to show here."),
        "model changed": _("{name} now serves another model under the same name; what was drawn before is kept."),
        "refused": _("{name} refuses this request."),
    }
    st.error(sentences[error.kind].format(name=f"**{engine.name}**", seconds=f"{engine.config.timeout:g}"))
    if error.detail:
        st.code(readable(error.detail), language=None, wrap_lines=True)


def without_empty_ids(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table without its column of ids, where the server names no token by its id."""
    return frame.drop(columns="id") if frame["id"].isna().all() else frame


def needs_a_local_model(name: str) -> NoReturn:
    """Say that this page shows the inside of a model, which an engine keeps to itself, and stop it."""
    st.info(
        _(
            "This page shows the inside of a model, so it needs a local model. {name} runs elsewhere and "
            "returns only tokens and probabilities. Choose a local model above, or a page that works with it:"
        ).format(name=f"**{name}**")
    )
    titles = stages.titles()
    with st.container(horizontal=True):
        for stage in STAGES:
            st.page_link(stages.script(stage), label=titles[stage], icon=":material/arrow_forward:")
    link.stop()
