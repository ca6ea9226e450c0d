"""The tokens still in play at one point of the chain, and their distribution.

Survivors are held by id, ascending, with the logits they have at that point; everything else follows from these and
is computed when asked for. The temperature is held apart from the logits because dividing by it changes neither the
order nor the ties: a top-k after the temperature never has to touch V numbers in float64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from lmcore.distribution import ArrayLike, as_tensor, check_logits

__all__ = ["Candidates"]


@dataclass(frozen=True, eq=False)
class Candidates:
    """Survivors of the chain so far. `n` of them, out of `vocab_size`.

    Attributes:
        vocab_size: V.
        logits: `[n]` float32 or float64, all finite, before the temperature.
        ids: `[n]` int64, ascending; None while all V tokens survive.
        temperature: What the logits are divided by; more than 0.
        ranked: Whether a top-k has put the survivors in order of probability (exllamav2's top-p depends on it).
        known_weights: `[n]` float64, in proportion to the probabilities, where the stage that kept them had them.
    """

    vocab_size: int
    logits: Tensor
    ids: Tensor | None = None
    temperature: float = 1.0
    ranked: bool = False
    known_weights: Tensor | None = None

    @classmethod
    def start(cls, logits: ArrayLike) -> Candidates:
        """All possible tokens of one position's logits `[V]`: copied, checked, those at -inf left out."""
        values = as_tensor(logits, "logits")
        if values.ndim != 1:
            raise ValueError(
                f"logits has shape {list(values.shape)}; one position at a time is reshaped: pass [V], as logits[-1]."
            )
        # A copy, because the lazy parts of a result are computed later and the caller may reuse the buffer.
        tokens = cls(len(values), values.clone())
        if len(values) and all(math.isfinite(bound.item()) for bound in torch.aminmax(values)):
            return tokens  # the usual case, in one pass; NaN comes out of aminmax as NaN
        check_logits(values)
        return tokens._possible()

    @classmethod
    def mixture(cls, parts: Sequence[tuple[float, Candidates]]) -> Candidates:
        """The weighted mean of several distributions over one vocabulary, as candidates at temperature 1."""
        probs = sum(weight * part.dense() for weight, part in parts)
        assert isinstance(probs, Tensor)
        ids = (probs > 0).nonzero().squeeze(1)
        kept = probs.index_select(0, ids)
        return cls(len(probs), kept.log(), ids, known_weights=kept)

    def __len__(self) -> int:
        """Return n, the number of tokens still in play."""
        return len(self.logits)

    @property
    def token_ids(self) -> Tensor:
        """`[n]` int64, ascending."""
        return torch.arange(self.vocab_size) if self.ids is None else self.ids

    def below_max(self) -> Tensor:
        """Tempered logits less their largest, `(z - max z) / T`, `[n]` float64, at most 0.

        The maximum goes first and the temperature second, so that T = 1e-40 gives a large number, not inf - inf.
        """
        logits = self.logits.to(torch.float64, copy=True)
        logits.sub_(logits.amax())
        return logits if self.temperature == 1 else logits.div_(self.temperature)

    def weights(self) -> Tensor:
        """Unnormalised probabilities, `[n]` float64; the largest is exactly 1."""
        return self.below_max().exp_()

    @cached_property
    def probs(self) -> Tensor:
        """Probabilities of the survivors, `[n]` float64, summing to 1."""
        if self.known_weights is not None:
            return self.known_weights / self.known_weights.sum()
        return torch.softmax(self.below_max(), dim=0)

    @cached_property
    def entropy_nats(self) -> float:
        """Entropy of the survivors' distribution, in nats."""
        return -torch.xlogy(self.probs, self.probs).sum().item()

    def dense(self) -> Tensor:
        """Probabilities of the whole vocabulary, `[V]` float64, 0 where a token is no longer in play."""
        if self.ids is None:
            return self.probs
        return torch.zeros(self.vocab_size, dtype=torch.float64).scatter_(0, self.ids, self.probs)

    def keep(self, positions: Tensor, weights: Tensor | None = None) -> Candidates:
        """Those at the given positions (ascending, of 0..n-1) only; `weights`, where known, are those of all n."""
        # index_select is four times as fast as an index in brackets.
        ids = positions if self.ids is None else self.ids.index_select(0, positions)
        known = None if weights is None else weights.index_select(0, positions)
        logits = self.logits.index_select(0, positions)
        return Candidates(self.vocab_size, logits, ids, self.temperature, self.ranked, known)

    def keep_where(self, mask: Tensor) -> Candidates:
        """Those where the mask `[n]` is true only."""
        return self if bool(mask.all()) else self.keep(mask.nonzero().squeeze(1))

    def heated(self, temperature: float) -> Candidates:
        """The same tokens with their logits divided by the temperature, more than 0."""
        return replace(self, temperature=self.temperature * temperature, known_weights=None)

    def check_ids(self, ids: Tensor, name: str) -> None:
        """Refuse ids outside the vocabulary, naming where they stand.

        Raises:
            ValueError: for the first of them.
        """
        outside = ids[(ids < 0) | (ids >= self.vocab_size)]
        if len(outside):
            raise ValueError(
                f"{name} names token {outside[0].item()}; ids of this vocabulary run to {self.vocab_size - 1}."
            )

    def with_logits(self, logits: Tensor) -> Candidates:
        """The same tokens with other logits, `[n]` float64, at temperature 1; -inf takes a token out of play."""
        return replace(self, logits=logits, temperature=1.0, known_weights=None)._possible()

    def tempered(self) -> Tensor:
        """Logits divided by the temperature, `[n]` float64, a copy."""
        logits = self.logits.to(torch.float64, copy=True)
        return logits if self.temperature == 1 else logits.div_(self.temperature)

    def edited(self, token_ids: Tensor, change: str, amounts: Tensor) -> Candidates:
        """The same tokens with some logits changed; a logit of -inf takes its token out of play.

        Args:
            token_ids: `[m]` int64, distinct, of the vocabulary; those no longer in play are skipped.
            change: "add", or "penalise": divide logits above 0 and multiply the others.
            amounts: `[m]` float64.
        """
        if self.ids is None:
            positions = token_ids
        else:
            positions = torch.searchsorted(self.ids, token_ids).clamp(max=len(self) - 1)
            present = self.ids[positions] == token_ids
            positions, amounts = positions[present], amounts[present]
        logits = self.tempered()
        old = logits[positions]
        new = old + amounts if change == "add" else torch.where(old > 0, old / amounts, old * amounts)
        logits[positions] = new
        return self.with_logits(logits)

    def _possible(self) -> Candidates:
        """Leave out tokens at -inf; refuse logits that overflowed."""
        low, high = (bound.item() for bound in torch.aminmax(self.logits))
        if math.isnan(high) or math.isinf(high):
            detail = "no token is left: every logit is -inf" if high < 0 else "the logits overflowed to inf"
            raise ValueError(f"After this edit {detail}; use smaller penalties and biases, or a larger temperature.")
        return self if low > -math.inf else self.keep_where(self.logits > -math.inf)
