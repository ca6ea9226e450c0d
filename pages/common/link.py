"""State is a link: what a widget holds is in the session, and the address of the page says it.

- The session is the truth. `remember(key, default)` gives a value a home in `st.session_state`; widgets are made
  with that key and `persist_state="session"`, so the value is there again when the reader comes back to a page.
- The address mirrors it. `publish()`, at the end of a run or through `stop()`, writes every value remembered in that
  run into the address, but for texts too long for one. Opening that address in a fresh browser, or after the server
  was restarted, gives the same page: the first `remember` of a session reads the address. Values that do not fit are
  replaced, and said.
- What a page's own widgets move is a fragment (`fragment`): it runs again by itself, and publishes by itself.
- The browser's Back and Forward change the page and lose nothing: the session's values stay.
- A link inside the app sets values when it carries `apply=1` (see `page.try_next`); with `apply=fresh` all others go
  back to what they are on a first visit, but for the language.

Streamlit's own `bind="query-params"` is not used: it adds several history entries at each page change, after which
Back shows defaults, it drops values out of range without a word, and st.switch_page raises.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlencode

import streamlit as st

from pages.common import former_names
from pages.common.escape import whole_characters
from pages.live.link import show_in_address

_KEYS = "link.keys"  # the parameters of this run, in order
_NOTES = "link.notes"  # key -> (value shown instead, what to tell the reader)
_APPLIED = "link.applied"  # the link whose values were taken last
_KNOWN = "link.known"  # every parameter that the session has remembered
_ASSIGNED = "link.assigned"  # key -> how many times `assign` has set it
_ADDRESS = "link.address"  # the parameters last published
_DEFAULTS = "link.defaults"  # what each parameter is without an address
_SUPPOSED = "link.supposed"  # parameters read in place of the address's; None stands for the default
_PUBLISHED = "link.published"  # whether this run has published
APPLY = "apply"
_TEXT, _FORM = "prompt", "form"  # a link that sets the prompt's text makes the prompt a text
LONGEST = 4000  # characters of a value in the address; servers refuse addresses of some 64 KB, browsers those of 2 MB
FRESH = "fresh"
_KEPT = ("lang", "present")  # how the reader reads: no lesson's business
Parse = Callable[[str], Any]


def begin() -> None:
    """Start a run: call it first in app.py. Takes the values of a link that was followed inside the app."""
    _start([])
    st.session_state.setdefault(_NOTES, {})
    query = st.query_params.to_dict()
    if APPLY not in query:
        st.session_state[_APPLIED] = None
    elif st.session_state.get(_APPLIED) != query:
        st.session_state[_APPLIED] = query
        others = st.session_state.get(_KNOWN, set()) - {*_KEPT} if query[APPLY] == FRESH else set()
        others |= {_FORM} if _TEXT in query else set()
        _read_anew({*query, *others})


def take_address() -> None:
    """Take every value from the address, as after the browser's Back to another state of a page."""
    _read_anew(st.session_state.get(_KNOWN, set()) - {*_KEPT})


def suppose(values: Mapping[str, str | None]) -> None:
    """Give parameters that the next `remember` of each reads in place of the address's; None is the default."""
    st.session_state[_SUPPOSED] = {former_names.key_today(key): value for key, value in values.items()}


def text_given(key: str) -> str | None:
    """Return the text that the next `remember` of a parameter reads, None when there is none."""
    supposed = st.session_state.get(_SUPPOSED, {})
    names = (key, *former_names.former_keys(key))
    in_address = next((st.query_params[name] for name in names if name in st.query_params), None)
    return former_names.value_today(key, supposed.get(key, in_address))


def _read_anew(keys: Iterable[str]) -> None:
    st.session_state[_SUPPOSED] = {}
    for key in map(former_names.key_today, keys):
        if not key.startswith("link."):  # our own
            st.session_state.pop(key, None)  # remember() reads it from the address


def go(script: Path, values: Mapping[str, str]) -> NoReturn:
    """Open a page at once with these values; all others go back to what they are on a first visit."""
    st.session_state[_APPLIED] = None
    st.switch_page(script, query_params={**values, APPLY: FRESH})


def remember(key: str, default: Any, parse: Parse = str) -> Any:
    """Give a value a home in the session and a place in the address.

    Args:
        key: its name in `st.session_state` and in the address.
        default: the value on a first visit without it in the address.
        parse: turns the address's text into a value; a ValueError or KeyError means it does not fit.

    Returns:
        The current value. A widget made afterwards with this key shows it.
    """
    if key not in st.session_state:
        st.session_state[key] = default
        found = text_given(key)
        st.session_state.get(_SUPPOSED, {}).pop(key, None)
        if found is not None:
            text = whole_characters(found)
            try:
                st.session_state[key] = parse(text)
            except (ValueError, KeyError):
                replace(key, default, text)
    if key not in st.session_state[_KEYS]:
        st.session_state[_KEYS].append(key)
    st.session_state.setdefault(_KNOWN, set()).add(key)
    st.session_state.setdefault(_DEFAULTS, {})[key] = default
    return st.session_state[key]


def replace(key: str, value: Any, given: object) -> None:
    """Set a value that did not fit, and note what was given so that `note` can tell the reader."""
    st.session_state[key] = value
    st.session_state[_NOTES][key] = (value, str(given))


def replaced(key: str) -> str | None:
    """Return what was given instead of the value of `key`, until the reader changes it; None when it fitted."""
    value, given = st.session_state[_NOTES].get(key, (None, None))
    if given is not None and st.session_state.get(key) != value:
        del st.session_state[_NOTES][key]
        return None
    return given


def assign(values: Mapping[str, Any]) -> None:
    """Set values that widgets show, in a callback: what a preset sets, for instance.

    Each value gets a new widget. A browser tells the values of all its widgets with each message; one that was on its
    way when the answer came has the old ones, and would take the change back.
    """
    counts = st.session_state.setdefault(_ASSIGNED, {})
    for key, value in values.items():
        if key in st.session_state:
            del st.session_state[key]  # and what the browser says of its old widget
        st.session_state[key] = value
        counts[key] = counts.get(key, 0) + 1


def widget_key(key: str) -> str:
    """Return the key of the widget that shows a value now; the widget calls `take_over` when it is moved."""
    current = _widget_key(key)
    if current != key and st.session_state.get(current) != st.session_state[key]:
        st.session_state[current] = st.session_state[key]
    return current


def take_over(*keys: str) -> None:
    """Take the values of these keys from the widgets on the page that show them, before a callback reads them."""
    for key in keys:
        if (current := _widget_key(key)) != key and current in st.session_state:
            st.session_state[key] = st.session_state[current]


def _widget_key(key: str) -> str:
    count = st.session_state.get(_ASSIGNED, {}).get(key, 0)
    return f"{key}~{count}" if count else key


def as_text(value: Any) -> str:
    """Return a value as the address has it: booleans as 1 and 0, lists joined by commas.

    >>> as_text(True), as_text(0.8), as_text(["top_k", "top_p"])
    ('1', '0.8', 'top_k,top_p')
    """
    if isinstance(value, bool):
        return "1" if value else "0"
    return ",".join(map(as_text, value)) if isinstance(value, (list, tuple)) else str(value)


def fragment(show: Callable[[], None]) -> None:
    """Show a part of the page that runs again by itself when a widget in it is moved; the rest stays as it is.

    When `show`, or a callback of a widget in it, changes a value remembered before it, everything runs again. Values
    remembered after it would not be in the address: call it last, or before links only.
    """
    around = {key: st.session_state.get(key) for key in st.session_state[_KEYS]}

    @st.fragment
    def run() -> None:
        _start(list(around))
        if any(st.session_state.get(key) != value for key, value in around.items()):
            st.rerun()
        show()
        publish()

    run()


def _start(keys: list[str]) -> None:
    st.session_state[_KEYS], st.session_state[_PUBLISHED] = keys, False


def publish(*, early: bool = False) -> None:
    """End a run: write the values remembered in it into the address, unless a fragment of it has.

    Args:
        early: the run did not come to the end of its page, so what else the address says stays in it.
    """
    state = st.session_state
    if state[_PUBLISHED]:
        return
    state[_PUBLISHED] = True
    values = {key: as_text(state[key]) for key in state[_KEYS] if state.get(key) is not None}
    if early:
        known = state.get(_KNOWN, ())  # the session has values that are nobody's business, under names anyone can write
        for key, text in st.query_params.to_dict().items():
            if key not in (APPLY, *state[_KEYS]):
                values[key] = as_text(state[key]) if key in known and state.get(key) is not None else text
    state[_ADDRESS] = {key: text for key, text in values.items() if len(text) <= LONGEST}
    show_in_address(time.time_ns() // 1000, state[_ADDRESS])


def address(only: Collection[str] = ()) -> str:
    """Return an address that opens the page as it was at the end of the last run, as short as it can be.

    The language is always in it; other values only where they are not what a first visit has.

    Args:
        only: the parameters it may have besides the language; all when there are none.
    """
    origin = str(st.context.url or "http://localhost:8501/").partition("?")[0]
    published = st.session_state.get(_ADDRESS, {})
    state = {key: text for key, text in published.items() if key == "lang"}
    state |= {key: text for key, text in moved().items() if key in only or not only}
    return f"{origin}?{urlencode(state, safe='/,:')}" if state else origin


def moved() -> dict[str, str]:
    """Return what the page's address says besides what a first visit has, but for how the reader reads."""
    defaults = st.session_state.get(_DEFAULTS, {})
    published = st.session_state.get(_ADDRESS, {})
    return {key: text for key, text in published.items() if key not in _KEPT and text != as_text(defaults.get(key))}


def stop() -> NoReturn:
    """End a page early. Pages call this, not st.stop(), after which nothing more can be sent to the browser."""
    publish(early=True)
    st.stop()
