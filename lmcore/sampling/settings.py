"""What a sampler is asked to do: the knobs, their order, and the rules an engine applies at the boundaries.

Stage names are field names: `top_k=50` is carried out by the stage "top_k". A stage runs when its field is away from
the value that means off, in the order of `SamplingSettings.order`, and nothing else runs: the default is the plain
softmax at temperature 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from numbers import Integral, Real
from typing import Any, Literal, get_args, get_type_hints

__all__ = ["OFF", "STAGES", "Rules", "SamplingSettings"]

OFF: Mapping[str, Any] = {
    "logit_bias": (),
    "repetition_penalty": 1.0,
    "frequency_penalty": 0.0,
    "presence_penalty": 0.0,
    "temperature": 1.0,
    "top_n_sigma": None,
    "top_k": None,
    "top_p": 1.0,
    "min_p": 0.0,
    "typical_p": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
}
"""The value of each stage's field that changes nothing, in the default order of the stages."""

STAGES: tuple[str, ...] = tuple(OFF)
"""Every stage there is, in the default order: edits of the logits, temperature, then the filters."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Where engines differ under the same knobs. The defaults are lmcore's own: exact counts, lower ids first.

    Attributes:
        top_k_ties: Tokens equal to the k-th: "lowest" keeps exactly k, lower ids first; "all" keeps every one.
        top_k_beyond_vocab: What k > V is called, "clamped" or "off"; both keep every token.
        top_p_boundary: "crossing kept": tokens enter by falling probability until their sum reaches p. "crossing
            dropped": exllamav2's heap, in which a token that would carry the sum past p pushes out the smallest.
        top_p_ties: Which of equal tokens enters the nucleus first, the "lowest" id or the "highest".
        typical_boundary: "reach" stops once the sum is p or more; "exceed" once it is more than p; "dropped" stops
            before the token that would reach p.
        typical_ties: Tokens as typical as the last one kept: "lowest" stops at the boundary, "all" keeps them.
        typical_score: "surprisal" is `-log p`, as published; "exllamav2" is `-(p + log p)`, as that engine computes it.
        additive_penalties_count: Which tokens the presence and frequency penalties count, "all" or "generated".
        greedy_below: A temperature below this is greedy, as 0 is.
        zero_temperature: What temperature 0 means, "greedy" or "error".
    """

    top_k_ties: Literal["lowest", "all"] = "lowest"
    top_k_beyond_vocab: Literal["clamped", "off"] = "clamped"
    top_p_boundary: Literal["crossing kept", "crossing dropped"] = "crossing kept"
    top_p_ties: Literal["lowest", "highest"] = "lowest"
    typical_boundary: Literal["reach", "exceed", "dropped"] = "reach"
    typical_ties: Literal["lowest", "all"] = "lowest"
    typical_score: Literal["surprisal", "exllamav2"] = "surprisal"
    additive_penalties_count: Literal["all", "generated"] = "all"
    greedy_below: float = 0.0
    zero_temperature: Literal["greedy", "error"] = "greedy"

    def __post_init__(self) -> None:
        """Check that each rule is one of those known."""
        for name, hint in get_type_hints(Rules).items():
            value, choices = getattr(self, name), get_args(hint)
            if choices and value not in choices:
                raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(map(repr, choices))}.")
        if not (isinstance(self.greedy_below, Real) and 0 <= self.greedy_below < math.inf):
            raise ValueError(f"greedy_below is {self.greedy_below!r}; it must be a temperature, 0 or more and finite.")


@dataclass(frozen=True, kw_only=True)
class SamplingSettings:
    """The knobs of a sampler, checked. Frozen and hashable, so a run can be named by its settings.

    Attributes:
        temperature: At least 0, finite. Divides the logits; 0 is greedy (the lowest id among equal maxima).
        top_k: An integer of 1 or more; None or 0 is off. More than V keeps all V, and the step says so.
        top_p: From 0 to 1; 1 is off, 0 keeps one token.
        min_p: From 0 to 1; 0 is off. Keeps tokens with at least min_p times the largest probability.
        typical_p: From 0 to 1; 1 is off, 0 keeps the one most typical token.
        epsilon_cutoff: From 0 up to but not 1; 0 is off. Keeps tokens of at least this probability.
        eta_cutoff: From 0 up to but not 1; 0 is off. The same with a cutoff that falls as entropy rises.
        top_n_sigma: More than 0; None or 0 is off. Keeps logits within n standard deviations of the largest.
        repetition_penalty: More than 0; 1 is off. A logit above 0 is divided, a negative one multiplied.
        presence_penalty: Any finite number; 0 is off. Subtracted once from each token seen. (The hosted APIs take
            -2 to 2 only; llama.cpp takes any, and a wider range harms nothing here.)
        frequency_penalty: Any finite number; 0 is off. Subtracted once for each time a token was seen.
        penalty_last_n: How many of the latest tokens the penalties look at; None is all of them.
        logit_bias: Token id -> number added to its logit; -inf bans the token. Kept as sorted pairs.
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

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    min_p: float = 0.0
    typical_p: float = 1.0
    epsilon_cutoff: float = 0.0
    eta_cutoff: float = 0.0
    top_n_sigma: float | None = None
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    penalty_last_n: int | None = None
    logit_bias: Mapping[int, float] | tuple[tuple[int, float], ...] = ()
    seed: int | None = None
    order: tuple[str, ...] = STAGES
    rules: Rules = Rules()
    engine: str = "lmcore"
    ignored: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check every field and bring it to one form."""
        inf = math.inf
        self._number("temperature", "0 or more and finite", lambda t: 0 <= t < inf)
        for name in ("top_p", "min_p", "typical_p"):
            self._number(name, "from 0 to 1", lambda p: 0 <= p <= 1)
        for name in ("epsilon_cutoff", "eta_cutoff"):
            self._number(name, "0 (off) or more, and less than 1", lambda p: 0 <= p < 1)
        self._number("repetition_penalty", "more than 0 and finite", lambda r: 0 < r < inf)
        for name in ("presence_penalty", "frequency_penalty"):
            self._number(name, "finite", math.isfinite)
        if self.top_n_sigma is not None:
            self._number("top_n_sigma", "None or 0 (off), or more than 0 and finite", lambda n: 0 <= n < inf)
        self._integer("top_k", "None or 0 (off), or an integer of 1 or more", 0, inf)
        self._integer("penalty_last_n", "None (all tokens), or an integer of 0 or more", 0, inf)
        self._integer("seed", "None, or an integer from 0 to 2**64 - 1", 0, 2**64 - 1)
        for name in ("top_k", "top_n_sigma"):
            if getattr(self, name) == 0:
                object.__setattr__(self, name, None)  # one value for off, so that equal settings compare equal
        object.__setattr__(self, "logit_bias", _bias_pairs(self.logit_bias))
        object.__setattr__(self, "order", self._checked_order())
        if not isinstance(self.rules, Rules):
            raise ValueError(f"rules is {self.rules!r}; it must be a Rules.")
        if self.temperature == 0 and self.rules.zero_temperature == "error":
            raise ValueError(
                f"temperature is 0, which {self.engine} refuses when sampling: give more than 0, or choose an engine "
                "in which 0 means greedy."
            )

    @cached_property
    def active(self) -> tuple[str, ...]:
        """The stages that will run, in order: those whose field is away from its off value."""
        return tuple(name for name in self.order if getattr(self, name) != OFF[name])

    def _number(self, name: str, allowed: str, is_allowed: Any) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, Real) or not is_allowed(float(value)):  # NaN fails any
            raise ValueError(f"{name} is {value!r}; it must be a number, {allowed}.")
        object.__setattr__(self, name, float(value))

    def _integer(self, name: str, allowed: str, low: float, high: float) -> None:
        value = getattr(self, name)
        if value is None:
            return
        if isinstance(value, bool) or not isinstance(value, Integral) or not low <= int(value) <= high:
            raise ValueError(f"{name} is {value!r}; it must be {allowed}.")
        object.__setattr__(self, name, int(value))

    def _checked_order(self) -> tuple[str, ...]:
        if isinstance(self.order, str) or not isinstance(self.order, Iterable):
            raise ValueError(f"order is {self.order!r}; it must be a tuple of stage names, of {', '.join(STAGES)}.")
        order = tuple(self.order)
        for position, name in enumerate(order):
            if name not in STAGES:
                raise ValueError(f"order names {name!r}, which is not a stage; the stages are {', '.join(STAGES)}.")
            if name in order[:position]:
                raise ValueError(f"order names {name!r} twice; each stage runs at most once.")
        for field in fields(self):
            name = field.name
            if name in OFF and name not in order and getattr(self, name) != OFF[name]:
                raise ValueError(
                    f"{name} is {getattr(self, name)!r} but order has no stage {name!r}: add the stage to order, or "
                    f"set {name} to {OFF[name]!r}."
                )
        return order


def _bias_pairs(bias: Any) -> tuple[tuple[int, float], ...]:
    """Check a mapping (or pairs) of token id -> bias and return it as pairs sorted by id."""
    try:
        pairs = list(bias.items()) if isinstance(bias, Mapping) else [(token, value) for token, value in bias]
    except (TypeError, ValueError):
        raise ValueError(f"logit_bias is {bias!r}; it must map token ids to numbers, like {{42: -1.5}}.") from None
    for token, value in pairs:
        if isinstance(token, bool) or not isinstance(token, Integral) or token < 0:
            raise ValueError(f"logit_bias has the key {token!r}; token ids are integers of 0 or more.")
        if isinstance(value, bool) or not isinstance(value, Real) or not float(value) < math.inf:
            raise ValueError(f"logit_bias for token {token} is {value!r}; it must be a finite number, or -inf to ban.")
    if len({int(token) for token, _ in pairs}) < len(pairs):
        raise ValueError(f"logit_bias is {bias!r}; it names a token twice.")
    return tuple(sorted((int(token), float(value)) for token, value in pairs))
