"""What every check says."""

from __future__ import annotations

from dataclasses import dataclass

from pages.common import page
from pages.figures.figure import Figure


@dataclass(frozen=True)
class Check:
    """A claim in circulation and what is computed of it here.

    Attributes:
        claim: the claim, in our words.
        claimed, computed: the two figures in short.
        computation: how it is computed, with its numbers; plain text.
        right: what is right, and where the claim went wrong.
        move: the lab where it can be moved, set up.
        chart, alt: a picture of it, where one helps.
    """

    claim: str
    claimed: str
    computed: str
    computation: str
    right: str
    move: page.Suggestion
    chart: Figure | None = None
    alt: str = ""
