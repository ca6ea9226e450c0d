"""Which sizes of a gradient step are tried on a model."""

from __future__ import annotations

from dataclasses import dataclass

from lmcore import LanguageModel
from lmcore.parameters import count

_LARGE_MODEL = 20_000_000  # parameters; from here on each size of step takes a second or more


@dataclass(frozen=True)
class Sizes:
    """The sizes of a step that are tried.

    Attributes:
        smallest, largest: in log10 of eta, as all but the last.
        first: the one shown to begin with.
        between: from one to the next.
        digits: how many of them are found of the size that stops helping.
    """

    smallest: float
    largest: float
    first: float
    between: float
    digits: int

    @property
    def grid(self) -> tuple[float, ...]:
        """Every eta, ascending from 0."""
        n = round((self.largest - self.smallest) / self.between)
        return (0.0, *(10.0 ** (self.smallest + place * self.between) for place in range(n + 1)))


def sizes_of(lm: LanguageModel) -> Sizes:
    """Return which sizes are tried: on a large model fewer, as each takes a pass of seconds, and smaller ones.

    The first-order line is near the curve while eta |g|^2 is below the loss, and |g|^2 grows with the model.
    """
    return Sizes(-4.0, 2.0, -2.0, 0.2, 4) if count(lm.config).total < _LARGE_MODEL else Sizes(-7.0, 0.0, -5.5, 0.5, 2)
