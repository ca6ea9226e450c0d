"""What is computed once and serves every session.

The only place that caches. A page writes

    @shared(entries=16)
    def _pair_cosines(table_name: str, seed: int, _table: Tensor) -> np.ndarray:

and the function runs once for each set of arguments, whoever asks; an argument whose name begins with "_" is not looked
at. Everybody gets the same object: it is never changed in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, TypeVar, cast

import streamlit as st

P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class Shared(Protocol[P, R]):
    """A function whose results are kept; `clear` forgets the one for these arguments, or all."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return the result, kept or new."""

    def clear(self, *args: Any, **kwargs: Any) -> None:
        """Forget the result for these arguments, or all results without any."""


def shared(entries: int | None = None, doing: str = "") -> Callable[[Callable[P, R]], Shared[P, R]]:
    """Return a decorator that keeps what a function returns, for all sessions of the server.

    Args:
        entries: how many results are kept, the oldest goes first; None keeps them all.
        doing: what the page says meanwhile.
    """
    return cast(
        Callable[[Callable[P, R]], Shared[P, R]],
        st.cache_resource(show_spinner=doing or False, max_entries=entries),
    )
