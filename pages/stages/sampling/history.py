"""The history the penalties look at: the tokens before this position, and what the reader makes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from lmcore.sampling import History
from pages.common import link, widgets
from pages.common.text import _, markdown_literal, ngettext
from pages.stages.sampling.sources import Source

MAX_IN_ADDRESS = 800  # longer edits stay in the session
MAX_SHOWN = 200  # tokens that can be switched off, the latest; those before them always count
MAX_ADDED = 1000
_OUT, _ADDED, _OF, _TEXT = "history_out", "history_added", "history.of", "history.text"


@dataclass(frozen=True)
class Edited:
    """The history in use.

    Attributes:
        history: what counts.
        code: Python that gives it.
        is_edited: whether it differs from the source's own.
    """

    history: History
    code: str
    is_edited: bool


def choose(source: Source) -> Edited:
    """Show the history as tokens to switch off, a field to add others, and return what counts.

    An edit belongs to its source: another prompt, position or model has its own history again.
    """
    own = [*source.history.prompt, *source.history.generated]
    if st.session_state.get(_OF) not in (None, source.code):
        st.session_state.update({_OUT: (), _ADDED: ()})
    st.session_state[_OF] = source.code
    out = _remember(_OUT, len(own))
    added = _remember(_ADDED, len(source.logits))
    found = _edited(source, frozenset(out), added)
    with st.expander(_("History: the tokens that penalties count"), key="history"):
        _show_own(source, own, out)
        _show_added(source, added)
        _show_field(source)
        widgets.number("penalty_last_n", _("Penalties count only the last n tokens (0: all)"), 0, 2**31 - 1, 0)
        st.button(
            _("Restore the tokens of the source"), key="history.reset", on_click=_reset, disabled=not found.is_edited
        )
    if found.is_edited:
        n, of = len(found.history.prompt) + len(found.history.generated), len(own)
        counted = ngettext("The penalties count {n} token", "The penalties count {n} tokens", n).format(n=n)
        st.caption(counted + " " + _("(edited; the source has {of}).").format(of=of))
    return found


def _edited(source: Source, out: frozenset[int], added: tuple[int, ...]) -> Edited:
    if not out and not added:
        return Edited(source.history, source.history_code, False)
    n = len(source.history.prompt)
    prompt = [token for place, token in enumerate(source.history.prompt) if place not in out]
    generated = [token for place, token in enumerate(source.history.generated, start=n) if place not in out]
    generated += added
    return Edited(History(prompt, generated), f"lmcore.History(prompt={prompt}, generated={generated})", True)


def _show_own(source: Source, own: list[int], out: tuple[int, ...]) -> None:
    if not own:
        st.caption(_("This source has no tokens before it."))
        return
    first = max(len(own) - MAX_SHOWN, 0)
    if first:
        st.caption(_("The last {n:,} of {of:,} tokens. Earlier tokens also count.").format(n=MAX_SHOWN, of=len(own)))
    places = range(first, len(own))

    def switched(on: set[int]) -> None:
        st.session_state[_OUT] = tuple(place for place in places if place not in on)

    label = _("Before this position: press a token to leave it out")
    _pills("history.own", label, source, {place: own[place] for place in places}, set(places) - {*out}, switched)


def _show_added(source: Source, added: tuple[int, ...]) -> None:
    if not added:
        return

    def switched(on: set[int]) -> None:
        st.session_state[_ADDED] = tuple(token for place, token in enumerate(added) if place in on)

    label = _("Added, as if generated: press a token to remove it")
    _pills("history.more", label, source, dict(enumerate(added)), {*range(len(added))}, switched)


def _pills(
    key: str,
    label: str,
    source: Source,
    tokens: Mapping[int, int],
    on: Collection[int],
    switched: Callable[[set[int]], None],
) -> None:
    """Show tokens, by their places, as switches; `switched` is called with the places that are on now."""
    texts = {place: markdown_literal(source.token(token)) for place, token in tokens.items()}
    times = Counter(texts.values())
    # Streamlit tells pills apart by what stands on them, so tokens that read alike get their place beside them.
    labels = {place: text if times[text] == 1 else f"{text} {place}" for place, text in texts.items()}
    st.session_state[key] = [place for place in tokens if place in on]
    st.pills(
        label,
        list(tokens),
        selection_mode="multi",
        format_func=labels.__getitem__,
        key=key,
        on_change=lambda: switched(set(st.session_state[key] or ())),
    )


def _show_field(source: Source) -> None:
    field, add, instead = st.columns([3, 1, 1], vertical_alignment="bottom")
    field.text_input(
        _("Text to count"),
        key=_TEXT,
        max_chars=1000,
        autocomplete="off",
        help=_("It is tokenized in the same way as the text of the source."),
    )

    def take(replacing: bool) -> None:
        ids = tuple(source.encode(st.session_state[_TEXT]))
        before = () if replacing else st.session_state[_ADDED]
        st.session_state[_ADDED] = (*before, *ids)[:MAX_ADDED]
        if replacing:
            own = len(source.history.prompt) + len(source.history.generated)
            st.session_state[_OUT] = tuple(range(own))
        st.session_state[_TEXT] = ""

    add.button(_("Add"), key="history.add", on_click=take, args=(False,), width="stretch")
    instead.button(_("Use instead"), key="history.instead", on_click=take, args=(True,), width="stretch")


def _reset() -> None:
    st.session_state.update({_OUT: (), _ADDED: ()})


def _remember(key: str, below: int) -> tuple[int, ...]:
    """Return whole numbers from the session, or from the address while they fit in it; each less than `below`."""
    value: Any = st.session_state.get(key)
    if value is None or len(link.as_text(value)) <= MAX_IN_ADDRESS:
        value = link.remember(key, (), lambda text: tuple(int(part) for part in text.split(",") if part))
    if any(not 0 <= number < below for number in value):
        value = tuple(number for number in value if 0 <= number < below)
        link.replace(key, value, link.as_text(st.session_state[key]))
    refused = link.replaced(key)
    if refused is not None:
        st.text(
            _("{given} is not valid for {name}; showing {value}.").format(
                given=refused[:40], name=key, value=link.as_text(value) or _("off")
            )
        )
    return value
