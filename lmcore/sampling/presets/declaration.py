"""What is known of an engine's sampler, as data, and the settings that follow from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from lmcore.sampling.registry import OFF, all_fields, all_stages
from lmcore.sampling.registry import get as stage_of
from lmcore.sampling.rules import Rules
from lmcore.sampling.settings import SamplingSettings
from lmcore.sampling.stage import Range

__all__ = ["Preset", "Refused"]


class Refused(ValueError):
    """A value that the engine's server answers with an error.

    Attributes:
        preset: The engine.
        field: The setting.
        value: What was given.
        allowed: What the engine takes.
    """

    def __init__(self, preset: Preset, field: str, value: Any, allowed: Range) -> None:
        super().__init__(f"{preset.title} refuses {field} = {value!r}: it takes a number, {allowed}.")
        self.preset, self.field, self.value, self.allowed = preset, field, value, allowed


@dataclass(frozen=True, kw_only=True)
class Preset:
    """One engine's sampler: its conventions, and what a user of its server gets who says nothing.

    Attributes:
        name: What `preset` calls it.
        title: What a page calls it.
        version: Which version was read or run.
        date: When that version was current, as "2026-10" or "2026-08-21".
        order: The stages it has, of those known here, in the order it runs them.
        defaults: Its defaults where they are not off.
        rules: Its boundary rules.
        does: What it does, one sentence each.
        source: Where that was learnt.
        assumed: Whether the engine's documentation leaves it open, so that this is a guess.
        off: Field -> which values beyond those of `SamplingSettings` the engine takes to mean off.
        limits: Field -> the values its server takes; others are refused.
        reads: Field -> how it reads a value that it neither refuses nor takes as given.
        penalty_window: Whether `penalty_last_n` is one of its knobs.
        lacks: Fields of its stages that it does not have.
        alone: Field -> the stages that are left when it is on; the others do not run.
        from_model: The settings it takes from the model's own files, before its defaults.
        passes_over: Values of these that count as nothing said.
        reports: What it calls the log-probability of a token -> which one that is; its default first. "raw" is before
            everything, "edited" after bias and penalties, "heated" after these and the temperature, "final" after
            every stage, "" not documented. Empty where it was not read.
        silent: What it uses when nothing is asked for, where that differs from its defaults under knobs.
    """

    name: str
    title: str
    version: str
    date: str
    order: tuple[str, ...]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    rules: Rules
    does: tuple[str, ...]
    source: str
    assumed: bool = False
    off: Mapping[str, Callable[[float], bool]] = field(default_factory=dict)
    limits: Mapping[str, Range] = field(default_factory=dict)
    reads: Mapping[str, Callable[[float], float]] = field(default_factory=dict)
    penalty_window: bool = False
    lacks: tuple[str, ...] = ("dynatemp_range", "dynatemp_exponent")
    alone: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    from_model: tuple[str, ...] = ()
    passes_over: Mapping[str, float] = field(default_factory=dict)
    reports: Mapping[str, Literal["raw", "edited", "heated", "final", ""]] = field(default_factory=dict)
    silent: Mapping[str, Any] | None = None

    @property
    def knobs(self) -> tuple[str, ...]:
        """The fields of `SamplingSettings` that this engine has."""
        names = [each.name for stage in self.order for each in stage_of(stage).fields]
        lacks = self.lacks if self.penalty_window else (*self.lacks, "penalty_last_n")
        return (*dict.fromkeys(name for name in names if name not in lacks), "seed")

    def read(self, name: str, value: Any) -> Any:
        """Return a knob's value as the engine takes it.

        Raises:
            Refused: the engine's server answers it with an error.
        """
        known = OFF.get(name)
        if value is None or (name in self.off and _is_number(value) and self.off[name](value)):
            return known
        if value == known or not _is_number(value):
            return value  # what is no number is left to SamplingSettings to refuse
        if name in self.limits and value not in self.limits[name]:
            raise Refused(self, name, value, self.limits[name])
        return self.reads[name](value) if name in self.reads else value

    def taken_from(self, model: Mapping[str, Any]) -> dict[str, Any]:
        """Return what it takes of a model's own settings, as it reads them; a value it refuses is left out."""
        taken: dict[str, Any] = {}
        for name, value in model.items():
            if name not in self.from_model or name not in self.knobs or value == self.passes_over.get(name):
                continue
            try:
                taken[name] = all_fields()[name].check(self.read(name, value))
            except ValueError:
                continue
        return taken

    def settings(self, overrides: Mapping[str, Any], model: Mapping[str, Any] | None = None) -> SamplingSettings:
        """Return its order, rules and defaults under the knobs given; see `lmcore.preset`."""
        values: dict[str, Any] = dict(self.defaults if self.silent is None or overrides else self.silent)
        values.update(self.taken_from(model or {}))
        ignored = []
        for name, given in overrides.items():
            if name in ("order", "rules"):
                values[name] = given
                continue
            value = self.read(name, given)
            if name in self.knobs:
                values[name] = value
            elif value and value != all_fields()[name].off:  # what is off there anyway is not missed
                ignored.append(name)
        order = values.pop("order", self.order)
        for switch, stages in self.alone.items():
            if values.get(switch, OFF[switch]) != OFF[switch]:
                order = tuple(name for name in order if name in stages)
                ignored += self._drop_others(values, order)
        rules = values.pop("rules", self.rules)
        return SamplingSettings(**values, order=order, rules=rules, engine=self.name, ignored=tuple(ignored))

    def _drop_others(self, values: dict[str, Any], order: tuple[str, ...]) -> list[str]:
        """Take away the fields of stages that do not run, and name those that were on."""
        kept = {each.name for stage in order for each in stage_of(stage).fields} | {"seed"}
        switches = {stage.fields[0].name for stage in all_stages()}
        dropped = [name for name in values if name in all_fields() and name not in kept]
        return [name for name in dropped if values.pop(name) != OFF.get(name) and name in switches]


def settings_names() -> set[str]:
    """Return what a preset may be given."""
    return {*all_fields(), "seed", "order", "rules"}


def at_least_one(value: float) -> bool:
    """Whether a value is 1 or more."""
    return value >= 1


def at_most_zero(value: float) -> bool:
    """Whether a value is 0 or less."""
    return value <= 0


def outside_zero_one(value: float) -> bool:
    """Whether a value is 0 or less, or 1 or more."""
    return value <= 0 or value >= 1


def within_zero_one(value: float) -> float:
    """Return a value moved into 0..1."""
    return min(max(value, 0.0), 1.0)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
