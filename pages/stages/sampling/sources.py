"""Where the logits come from: the model and a position of the prompt, the worked example, or the reader's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import streamlit as st

from pages.common import link, session, widgets
from pages.common.text import _, ngettext, visible
from pages.stages.sampling import worked
from pages.stages.sampling.own_logits import OwnLogits, read

MAX_IN_ADDRESS = 800  # longer texts stay in the session
EXAMPLE = "很: 2.3\n好: 1.5\n不错: 3.8\n真: 0.5\n差: 1.2"
MAX_PROBLEMS = 5


@dataclass(frozen=True)
class Source:
    """Logits of one position.

    Attributes:
        logits: [V]; float32 from a model, float64 from a text.
        token: the text of a token, by id.
        history: ids of the tokens before, for the penalties.
        code: Python that defines `logits` and `history`.
    """

    logits: np.ndarray
    token: Callable[[int], bytes | str]
    history: tuple[int, ...]
    code: str


def choose() -> Source:
    """Let the reader choose where the logits come from, and return them; a source without logits stops the page."""
    titles = {"model": _("The model, at a position"), "worked": _("Worked example"), "own": _("Own logits")}
    kind = widgets.choice("source", _("Logits from"), list(titles), "model", format_func=titles.__getitem__)
    if kind == "worked":
        st.caption(_("After 今天天气, five candidates with the logits that lessons use."))
        return _listed(list(worked.LOGITS), list(worked.LOGITS.values()))
    return _own() if kind == "own" else _model()


def _model() -> Source:
    position = widgets.position_picker(label=_("The token after which position? Choose one"))
    ids = tuple(session.encoding().ids)
    lm = session.language_model()
    code = (
        f"lm = lmcore.load({lm.name!r})\n"
        f"ids = lm.tokenizer.encode({session.prompt()!r}).ids\n"
        f"logits = lm(ids)[{position}]\n"
        f"history = lmcore.History(prompt=ids[:{position + 1}])"
    )
    logits = session.logits()[position].numpy()
    return Source(logits, lm.tokenizer.token_bytes, ids[: position + 1], code)


def _own() -> Source:
    text = st.session_state.get("own_logits")
    if text is None or len(text) <= MAX_IN_ADDRESS:
        text = link.remember("own_logits", EXAMPLE)
    given = st.text_area(
        _("Own logits"),
        key="own_logits",
        height=150,
        persist_state="session",
        help=_("One token a line as “token: value”, a bare list of numbers, CSV, or JSON."),
    )
    found = _read(given or "")
    if found.problems:
        listed = [
            _("Line {number} is no logit: {text}").format(number=number, text=visible(line[:60]))
            for number, line in found.problems[:MAX_PROBLEMS]
        ]
        n = len(found.problems)
        heading = ngettext(
            "{n} line could not be read; the rest is kept.", "{n} lines could not be read; the rest is kept.", n
        )
        st.text("\n".join([heading.format(n=n), *listed, *(["…"] if n > MAX_PROBLEMS else [])]))
    if not found.logits:
        st.info(_("Give at least one logit, such as “token: 2.3”."))
        link.stop()
    if max(found.logits) == -np.inf:
        st.info(_("Every logit is -inf, so no token is possible: give at least one finite number."))
        link.stop()
    return _listed(found.tokens, found.logits)


def _read(text: str) -> OwnLogits:
    """Read the text once, not at each run of the page."""
    last = st.session_state.get("own_logits.read")
    if last is None or last[0] != text:
        last = st.session_state["own_logits.read"] = (text, read(text))
    return last[1]


def _listed(tokens: list[str], logits: list[float]) -> Source:
    shown = logits if len(logits) <= 50 else logits[:50]
    code = f"logits = {shown!r}".replace("-inf", 'float("-inf")') + "\nhistory = ()"
    if len(logits) > len(shown):
        code = code.replace("\nhistory", _("  # and so on") + "\nhistory")
    return Source(np.array(logits, dtype=np.float64), tokens.__getitem__, (), code)
