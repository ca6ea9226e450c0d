"""Where engines differ under the same knobs, as data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Literal, get_args, get_type_hints

__all__ = ["Rules"]


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Where engines differ under the same knobs. The defaults are lmcore's own: exact counts, lower ids first.

    Attributes:
        top_k_ties: Tokens equal to the k-th: "lowest" keeps exactly k, lower ids first; "all" keeps every one.
        top_k_beyond_vocab: What k > V is called, "clamped" or "off"; both keep every token.
        top_p_boundary: "crossing kept": tokens enter by falling probability until their sum reaches p; "exceed": until
            it is more than p. "crossing dropped": exllamav2's heap, in which a token that would carry the sum past p
            pushes out the smallest.
        top_p_ties: Which of equal tokens enters the nucleus first, the "lowest" id or the "highest"; "all" lets every
            one of them in.
        top_p_joint: Whether top-p looks at the tokens that entered top-k and not at those it left: "no", "yes", or
            "without min_p", where that is off.
        typical_boundary: "reach" stops once the sum is p or more; "exceed" once it is more than p; "dropped" stops
            before the token that would reach p.
        typical_ties: Tokens as typical as the last one kept: "lowest" stops at the boundary, "all" keeps them.
        top_n_sigma_divisor: What the variance of the n logits is divided by, "n" or "n - 1".
        typical_score: "surprisal" is `-log p`, as published; "exllamav2" is `-(p + log p)`, as that engine computes it.
        repetition_penalty_counts: Which tokens the repetition penalty counts, "all" or "generated".
        additive_penalties_count: Which tokens the presence and frequency penalties count, "all" or "generated".
        greedy_below: A temperature below this is greedy, as 0 is.
        least_temperature: A temperature above 0 and below this is raised to it.
        zero_temperature: What temperature 0 means, "greedy" or "error".
        boundary_ulps: By how many units in the last place of the logits' type a sum or a probability may miss its
            boundary and still count as reaching it. Probabilities typed as decimals ([.3, .1, .1, .5] under top-p
            0.8) sum to their boundary in decimals and miss it in binary; lmcore's own rule forgives that. Engines
            don't, so their presets have 0.
    """

    top_k_ties: Literal["lowest", "all"] = "lowest"
    top_k_beyond_vocab: Literal["clamped", "off"] = "clamped"
    top_p_boundary: Literal["crossing kept", "exceed", "crossing dropped"] = "crossing kept"
    top_p_ties: Literal["lowest", "highest", "all"] = "lowest"
    top_p_joint: Literal["no", "without min_p", "yes"] = "no"
    top_n_sigma_divisor: Literal["n", "n - 1"] = "n"
    typical_boundary: Literal["reach", "exceed", "dropped"] = "reach"
    typical_ties: Literal["lowest", "all"] = "lowest"
    typical_score: Literal["surprisal", "exllamav2"] = "surprisal"
    repetition_penalty_counts: Literal["all", "generated"] = "all"
    additive_penalties_count: Literal["all", "generated"] = "all"
    greedy_below: float = 0.0
    least_temperature: float = 0.0
    zero_temperature: Literal["greedy", "error"] = "greedy"
    boundary_ulps: float = 4.0

    def __post_init__(self) -> None:
        """Check that each rule is one of those known."""
        for name, hint in get_type_hints(Rules).items():
            value, choices = getattr(self, name), get_args(hint)
            if choices and value not in choices:
                raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(map(repr, choices))}.")
            if hint is float and not (isinstance(value, Real) and 0 <= float(value) < math.inf):
                raise ValueError(f"{name} is {value!r}; it must be a number, 0 or more and finite.")
