"""What a sampler is asked to do: the knobs, their order, and the rules an engine applies at the boundaries.

The knobs are the fields of the stages (`lmcore/sampling/stages/`): their names, their checks and what turns them off
are declared there. A stage runs when its field is away from the value that means off, in the order of
`SamplingSettings.order`, and nothing else runs: the default is the plain softmax at temperature 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

from lmcore.sampling import registry
from lmcore.sampling.rules import Rules

__all__ = ["SamplingSettings"]


@dataclass(frozen=True, init=False)
class SamplingSettings:
    """The knobs of a sampler, checked. Frozen and hashable, so a run can be named by its settings.

    Every field of every stage is an argument and an attribute: `SamplingSettings(temperature=0.8, top_k=40).top_k`.
    The common ones:

    - temperature: at least 0. Divides the logits; 0 is greedy (the lowest id among equal maxima).
    - top_k: an integer of 1 or more; None or 0 is off. More than V keeps all V, and the step says so.
    - top_p, typical_p: from 0 to 1; 1 is off, 0 keeps one token. min_p: from 0 to 1; 0 is off.
    - repetition_penalty: more than 0; 1 is off. presence_penalty, frequency_penalty: finite; 0 is off.
    - penalty_last_n: how many of the latest tokens the penalties look at; None is all of them, 0 none.
    - logit_bias: token id -> number added to its logit; -inf bans the token. Kept as sorted pairs.

    `registry.all_fields()` lists all of them with their ranges.

    Attributes:
        values: The fields that are not as when nobody sets them, as sorted pairs.
        seed: An integer from 0 to 2**64 - 1; None leaves the choice to the machine.
        order: The stages in the order they run, each at most once. A stage left out cannot be active.
        rules: The boundary rules; see `Rules`.
        engine: The name of the preset these settings came from, or "lmcore".
        ignored: Fields that were asked for and that the engine does not have.

    Raises:
        ValueError: naming the field, the value and what is allowed.

    >>> SamplingSettings().active
    ()
    >>> SamplingSettings(top_p=0.9, temperature=0.8).active
    ('temperature', 'top_p')
    """

    values: tuple[tuple[str, Any], ...]
    seed: int | None
    order: tuple[str, ...]
    rules: Rules
    engine: str
    ignored: tuple[str, ...]

    def __init__(
        self,
        *,
        values: Iterable[tuple[str, Any]] = (),
        seed: int | None = None,
        order: Iterable[str] | None = None,
        rules: Rules = Rules(),  # noqa: B008 - frozen
        engine: str = "lmcore",
        ignored: tuple[str, ...] = (),
        **fields: Any,
    ) -> None:
        """Check every field and bring it to one form; `values` is how `dataclasses.replace` hands on the old ones."""
        known = registry.all_fields()
        checked = {}
        for name, value in {**dict(values), **fields}.items():
            if name not in known:
                raise TypeError(
                    f"{name!r} is not a sampling setting; the settings are {', '.join(sorted(known))}. "
                    "A stage of your own is registered first: lmcore.sampling.register."
                )
            if (one_form := known[name].check(value)) != known[name].off:
                checked[name] = one_form
        if not isinstance(rules, Rules):
            raise ValueError(f"rules is {rules!r}; it must be a Rules.")
        order = tuple(each.name for each in registry.all_stages()) if order is None else _checked_order(order)
        own = {"values": tuple(sorted(checked.items())), "seed": _checked_seed(seed), "order": order, "rules": rules}
        for name, value in {**own, "engine": engine, "ignored": tuple(ignored)}.items():
            object.__setattr__(self, name, value)
        self._check_together()

    def __getattr__(self, name: str) -> Any:
        """Return a stage's field."""
        if not name.startswith("_") and "values" in self.__dict__:
            if name in self._by_name:
                return self._by_name[name]
            if name in (known := registry.all_fields()):
                return known[name].off
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __repr__(self) -> str:
        """Write the arguments that make these settings."""
        given = {**self._by_name, **({} if self.seed is None else {"seed": self.seed})}
        shown = [f"{name}={value!r}" for name, value in given.items()]
        return f"SamplingSettings({', '.join([*shown, f'engine={self.engine!r}'])})"

    @cached_property
    def _by_name(self) -> dict[str, Any]:
        return dict(self.values)

    @cached_property
    def active(self) -> tuple[str, ...]:
        """The stages that will run, in order: those with a field away from its off value."""
        return tuple(name for name in self.order if registry.get(name).is_on(self))

    def as_dict(self) -> dict[str, Any]:
        """Return every field of every stage with its value, then seed, order, rules, engine and ignored.

        `SamplingSettings(**settings.as_dict())` gives the same settings again.
        """
        own = {name: getattr(self, name) for name in ("seed", "order", "rules", "engine", "ignored")}
        return {**{name: getattr(self, name) for name in registry.all_fields()}, **own}

    def _check_together(self) -> None:
        missing = (each for each in registry.all_stages() if each.name not in self.order and each.is_on(self))
        for each in missing:
            name = next(iter(each.used(self)))
            raise ValueError(
                f"{name} is {getattr(self, name)!r} but order has no stage {each.name!r}: add the stage to order, or "
                f"set {name} to {each.fields[0].off!r}."
            )
        if self.temperature == 0 and self.rules.zero_temperature == "error":
            raise ValueError(
                f"temperature is 0, which {self.engine} refuses when sampling: give more than 0, or choose an engine "
                "in which 0 means greedy."
            )


def given_fields(settings: SamplingSettings) -> Mapping[str, Any]:
    """Return the fields that are not as when nobody sets them, in the order of the stages."""
    return {name: getattr(settings, name) for name in registry.all_fields() if name in dict(settings.values)}


def _checked_order(given: Any) -> tuple[str, ...]:
    names = [each.name for each in registry.all_stages()]
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ValueError(f"order is {given!r}; it must be a tuple of stage names, of {', '.join(names)}.")
    order = tuple(given)
    for position, name in enumerate(order):
        if name not in names:
            raise ValueError(f"order names {name!r}, which is not a stage; the stages are {', '.join(names)}.")
        if name in order[:position]:
            raise ValueError(f"order names {name!r} twice; each stage runs at most once.")
    return order


def _checked_seed(seed: Any) -> int | None:
    if seed is None:
        return None
    if isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= int(seed) < 2**64:
        raise ValueError(f"seed is {seed!r}; it must be None, or an integer from 0 to 2**64 - 1.")
    return int(seed)
