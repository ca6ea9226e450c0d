"""What a stage of a sampler is: one declaration, from which everything else about it follows.

A `Stage` says its fields (each with its off value, its range and where a slider stops), what it needs (history, state,
chance) and its function. The settings' checks, the order, the knobs on a page, what a link parses, the browser's tables
and the snippet are derived from it: a new stage is a new declaration in `lmcore/sampling/stages/`, or in a file of your
own (`lmcore.sampling.register`).

Three kinds of stages, by what they do: "edit" changes logits, "temperature" divides them, "filter" takes tokens away.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch
from torch import Tensor

from lmcore.sampling.candidates import Candidates
from lmcore.sampling.falling import Falling

if TYPE_CHECKING:
    from lmcore.sampling.settings import SamplingSettings

__all__ = ["NOTHING", "Branch", "Context", "Edit", "Field", "History", "Ids", "Note", "Range", "Stage", "span"]


class History(NamedTuple):
    """The tokens before this position: those of the prompt and those generated since."""

    prompt: Sequence[int] = ()
    generated: Sequence[int] = ()

    @property
    def all(self) -> list[int]:
        """The prompt, then what was generated."""
        return [int(token) for part in self for token in part]


class Note(str):
    """A remark on a step: a sentence, with the template and the values it was made from for a translation.

    >>> note = Note("top_k {k} keeps all", k=9)
    >>> str(note), note.template, note.values
    ('top_k 9 keeps all', 'top_k {k} keeps all', {'k': 9})
    """

    template: str
    values: Mapping[str, Any]

    def __new__(cls, template: str = "", **values: Any) -> Note:
        """Fill the template in."""
        note = super().__new__(cls, template.format(**values))
        note.template, note.values = template, values
        return note

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        """Copy and pickle it with its values."""
        return (self.template,), dict(self.values)


NOTHING = Note()


@dataclass(frozen=True)
class Range:
    """Which numbers a field takes: from low to high, each end included unless it is open; always finite.

    >>> 0.5 in Range(0, 1), 1 in Range(0, 1, high_open=True), str(Range(0, low_open=True))
    (True, False, 'more than 0')
    """

    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False

    def __contains__(self, value: float) -> bool:
        """Whether it is finite and lies within; NaN does not."""
        above = self.low < value if self.low_open else self.low <= value
        below = value < self.high if self.high_open else value <= self.high
        return above and below and -sys.float_info.max <= value <= sys.float_info.max  # of an integer too

    def __str__(self) -> str:
        """Say it, to follow "a number"."""
        if not math.isfinite(self.high):
            if not math.isfinite(self.low):
                return "finite"
            return f"more than {self.low:g}" if self.low_open else f"{self.low:g} or more"
        if self.low_open or self.high_open:
            low = f"more than {self.low:g}" if self.low_open else f"{self.low:g} or more"
            return f"{low}, and {'less than' if self.high_open else 'at most'} {self.high:g}"
        return f"from {self.low:g} to {self.high:g}"


def span(low: float, high: float, step: float) -> tuple[float, ...]:
    """Return the numbers from low to high by steps, without the dust of floating point.

    >>> span(0, 0.3, 0.1)
    (0.0, 0.1, 0.2, 0.3)
    """
    digits = max(len(f"{step:.10f}".rstrip("0").partition(".")[2]), 0)
    return tuple(round(low + place * step, digits) for place in range(round((high - low) / step) + 1))


@dataclass(frozen=True, kw_only=True)
class Field:
    """One number of the settings.

    Attributes:
        name: What the settings, the link and the snippet call it.
        title: What a page calls it, in English; pages translate it. "" where the stage has no other number.
        off: What it is when nobody sets it; of a stage's first field, the value that turns the stage off. None where
            0 says so on a slider.
        range: Which numbers it takes.
        whole: Whether whole numbers only.
        zero_is_off: Whether 0 is read as None.
        on: The value a stage is switched on with.
        stops: Where a slider stops, in order, for a vocabulary of the size given. Empty: a field without a slider.
    """

    name: str
    title: str = ""
    off: Any = 0.0
    range: Range = Range()
    whole: bool = False
    zero_is_off: bool = False
    on: Any = None
    stops: Callable[[int], Sequence[float]] = lambda vocab_size: ()

    @property
    def allowed(self) -> str:
        """The sentence of what is allowed, to follow "it must be"."""
        kind = "an integer" if self.whole else "a number"
        none = "" if self.off is not None else "None or 0 (off), or " if self.zero_is_off else "None (all), or "
        return f"{none}{kind}, {self.range}"

    def check(self, value: Any) -> Any:
        """Return a value in its one form: a float, an int, or None.

        Raises:
            ValueError: naming the field, the value and what is allowed.
        """
        if value is None and self.off is None:
            return None
        kind = Integral if self.whole else Real
        if isinstance(value, bool) or not isinstance(value, kind):
            self.refuse(value)
        number = int(value) if self.whole else float(value)  # type: ignore[call-overload]
        if self.zero_is_off and number == 0:
            return None
        if number not in self.range:
            self.refuse(value)
        return number

    def refuse(self, value: Any) -> None:
        """Raise the error that names what was given and what is allowed."""
        raise ValueError(f"{self.name} is {value!r}; it must be {self.allowed}.")


class Ids(Field):
    """A list of token ids, kept as a sorted tuple."""

    @property
    def allowed(self) -> str:
        """The sentence of what is allowed."""
        return "a sequence of token ids, integers of 0 or more"

    def check(self, value: Any) -> tuple[int, ...]:
        """Return the ids, sorted, each once."""
        if isinstance(value, (str, bytes)) or not isinstance(value, (Sequence, set, frozenset)):
            self.refuse(value)
        for token in value:
            if isinstance(token, bool) or not isinstance(token, Integral) or token < 0:
                self.refuse(value)
        return tuple(sorted({int(token) for token in value}))


@dataclass(frozen=True)
class Context:
    """What a stage may look at besides the candidates.

    Attributes:
        settings: All settings; a stage reads its own fields from them.
        history: The tokens before this position.
        start: Every possible token with its logit as given.
        entered: The candidates that entered each stage which has run, by the stage's name.
        state: What this stage carries from token to token; None in a stage without state.
    """

    settings: SamplingSettings
    history: History
    start: Candidates
    entered: Mapping[str, Candidates]
    state: Any = None

    @cached_property
    def tolerance(self) -> float:
        """How much a sum or a probability may miss its boundary by, as a share: see `Rules.boundary_ulps`."""
        return self.settings.rules.boundary_ulps * torch.finfo(self.start.logits.dtype).eps


class Branch(NamedTuple):
    """One way a stage of chance can go: its weight from 0 to 1, the candidates it leaves, and a remark."""

    weight: float
    tokens: Candidates
    note: Note = NOTHING


class Edit(NamedTuple):
    """A change of some logits: of distinct tokens `[m]`, by amounts `[m]` float64.

    "add" adds the amount; "penalise" divides logits above 0 by it and multiplies the others.
    """

    token_ids: Tensor
    change: Literal["add", "penalise"]
    amounts: Tensor


Run = Callable[[Candidates, Context], Candidates | tuple[Candidates, Note] | list[Branch]]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A stage of the sampler: all there is to know about it.

    Attributes:
        name: What the order calls it. Of a stage with one field, the field's name.
        title, help: Its name and what it does in a sentence, in English; pages translate them.
        kind: "edit", "temperature" or "filter".
        formula: As it is computed, for logits z and probabilities p of the candidates at that point.
        source: Where it was published, or the program it comes from.
        fields: The first turns the stage off; any of `switches` away from its off value turns it on.
        run: Its function: candidates and what may be looked at -> the candidates left, with a remark if there is
            one, or the branches of a stage of chance.
        switches: The fields that turn it on; the first alone when left out.
        needs_history: Whether it looks at the tokens before.
        by_chance: Whether it draws random numbers of its own, so that it returns branches with their weights.
        start: The state before the first token of a text, from the settings; None in a stage without state.
        after: The state after a token was drawn: (state, token id, candidates before, candidates after, settings).
        edit: What it adds to the logits of which tokens, or divides them by, where that depends on the settings and
            the history alone; `run` does the same.
        falling: Its function over many positions at once, for a stage that keeps a stretch of the falling order; None
            from it leaves these settings to `run`. What it is certain of is what `run` gives.
        notes: The templates of its remarks, for translations.
        rare: Whether a page folds it away until it is on.
    """

    name: str
    title: str
    help: str
    kind: Literal["edit", "temperature", "filter"]
    formula: str
    source: str
    fields: tuple[Field, ...]
    run: Run
    switches: tuple[str, ...] = ()
    needs_history: bool = False
    by_chance: bool = False
    start: Callable[[SamplingSettings], Any] | None = None
    after: Callable[[Any, int, Candidates, Candidates, SamplingSettings], Any] | None = None
    edit: Callable[[SamplingSettings, History], Edit] | None = None
    falling: Callable[[Falling, SamplingSettings], Falling | None] | None = None
    notes: tuple[str, ...] = ()
    rare: bool = True

    def is_on(self, settings: SamplingSettings) -> bool:
        """Whether it runs under these settings."""
        on = self.switches or (self.fields[0].name,)
        return any(field.name in on and getattr(settings, field.name) != field.off for field in self.fields)

    def used(self, settings: SamplingSettings) -> dict[str, Any]:
        """Return its fields for a label: the first one, and the others that are not as when nobody sets them."""
        values = {field: getattr(settings, field.name) for field in self.fields}
        return {f.name: value for f, value in values.items() if f is self.fields[0] or value != f.off}

    def branches(self, tokens: Candidates, context: Context) -> list[Branch]:
        """Run it and return its branches; a stage without chance has one, of weight 1."""
        result = self.run(tokens, context)
        if isinstance(result, Candidates):
            return [Branch(1.0, result)]
        return result if isinstance(result, list) else [Branch(1.0, *result)]
