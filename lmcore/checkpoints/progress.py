"""Telling how far a loading is."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class Doing(StrEnum):
    """What a loading is doing; the value says it in English."""

    CHECKING_COPY = "checking the converted copy kept from last time"
    CHECKING_FILE = "checking the file"
    DOWNLOADING = "downloading"
    READING_TOKENIZER = "reading the tokenizer"
    READING_WEIGHTS = "reading the weights"
    ROUNDING_WEIGHTS = "quantising the weights"
    KEEPING_COPY = "keeping a converted copy for the next start"


Progress = Callable[[Doing, float], None]
"""Called with what is being done and the share of it that is done, in [0, 1]. What it raises ends the loading."""


class LoadingCancelled(Exception):
    """Raised by a `Progress` to end a loading that nobody waits for any more."""


def silent(what: Doing, share: float) -> None:
    """Say nothing."""
