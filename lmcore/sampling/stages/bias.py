"""A number added to the logits of chosen tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import torch

from lmcore.sampling.candidates import Candidates
from lmcore.sampling.stage import Context, Edit, Field, History, Stage

if TYPE_CHECKING:
    from lmcore.sampling.settings import SamplingSettings

__all__ = ["LOGIT_BIAS", "Bias"]


class Bias(Field):
    """Token id -> number, -inf for a ban; kept as pairs sorted by id."""

    def check(self, value: Any) -> tuple[tuple[int, float], ...]:
        """Return the pairs of a mapping, or of pairs, checked."""
        try:
            pairs = list(value.items()) if isinstance(value, Mapping) else [(token, amount) for token, amount in value]
        except (TypeError, ValueError):
            raise ValueError(
                f"{self.name} is {value!r}; it must map token ids to numbers, like {{42: -1.5}}."
            ) from None
        for token, amount in pairs:
            if isinstance(token, bool) or not isinstance(token, Integral) or token < 0:
                raise ValueError(f"{self.name} has the key {token!r}; token ids are integers of 0 or more.")
            if isinstance(amount, bool) or not isinstance(amount, Real) or not float(amount) < math.inf:
                raise ValueError(
                    f"{self.name} for token {token} is {amount!r}; it must be a finite number, or -inf to ban."
                )
        if len({int(token) for token, _ in pairs}) < len(pairs):
            raise ValueError(f"{self.name} is {value!r}; it names a token twice.")
        return tuple(sorted((int(token), float(amount)) for token, amount in pairs))


def logit_bias(tokens: Candidates, context: Context) -> Candidates:
    """Add a number to the logits of some tokens; -inf bans one."""
    edit = _edit(context.settings, context.history)
    tokens.check_ids(edit.token_ids, "logit_bias")
    return tokens.edited(*edit)


def _edit(settings: SamplingSettings, history: History) -> Edit:
    bias = dict(settings.logit_bias)
    ids = torch.tensor(list(bias), dtype=torch.int64)
    return Edit(ids, "add", torch.tensor(list(bias.values()), dtype=torch.float64))


LOGIT_BIAS = Stage(
    name="logit_bias",
    title="Logit bias",
    help="Adds a number to the logits of chosen tokens.",
    kind="edit",
    formula="z + b",
    source="OpenAI API reference",
    fields=(Bias(name="logit_bias", off=()),),
    run=logit_bias,
    edit=_edit,
    rare=False,
)
