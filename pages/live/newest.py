"""The server's half of newest.js: messages of a live part are taken in the order in which the reader sent them."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import streamlit as st

_SESSION = "newest.session"


class Newest:
    """What a part has sent: numbered values, of which an older one never follows a newer one.

    Args:
        key: the part's key.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._answered = f"{key}.answered"

    def data(self) -> dict[str, Any]:
        """Return what the part is told: the number that its data answers, and which session speaks."""
        session = st.session_state.setdefault(_SESSION, secrets.token_hex(4))
        return {"answered": st.session_state.get(self._answered), "session": session}

    def taking(self, name: str, take: Callable[[Any], None]) -> Callable[[], None]:
        """Return the callback for a value's messages, which gives `take` those that are newer than all before.

        Args:
            name: of the value, as the part sends it.
            take: called with the value, before the page runs again. It comes from the browser: check its type.
        """

        def took() -> None:
            message = st.session_state[self._key].get(name)
            for each in message if isinstance(message, list) else [message]:  # a list is what `every` sends
                number = each.get("number") if isinstance(each, dict) else None
                if isinstance(number, int) and number > st.session_state.get(self._answered, 0):
                    st.session_state[self._answered] = number
                    take(each.get("value"))

        return took
