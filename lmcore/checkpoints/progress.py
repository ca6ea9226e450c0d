"""Telling how far a loading is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, float], None]
"""Called with what is being done and the share of it that is done, in [0, 1]. What it raises ends the loading."""


class LoadingCancelled(Exception):
    """Raised by a `Progress` to end a loading that nobody waits for any more."""


def silent(what: str, share: float) -> None:
    """Say nothing."""
