"""Two ways to obey a mask, and how far apart the distributions are that they draw from.

- Mask first (vLLM, SGLang, transformers): what is not allowed leaves before the sampler's first stage.
- Draw, then try again (llama.cpp, Ollama): a token is drawn from the whole chain without the mask. If it is not
  allowed, the mask is put on the logits, the chain runs again, and a second token is drawn. So

      P(x) = first(x) [x allowed] + P(first draw not allowed) second(x)

  where `second` is what masking first draws from. The two are equal where the chain removes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from lmcore.distribution import ArrayLike
from lmcore.sampling import History, Reshaped, SamplingSettings, State, registry, reshape


@dataclass(frozen=True, eq=False)
class Masking:
    """One position under a constraint. Distributions are `[V]` float64 and sum to 1.

    Attributes:
        allowed: `[V]` booleans.
        first: the whole chain without the mask.
        masked: the whole chain after the mask: what masking first draws from.
    """

    allowed: Tensor
    first: Reshaped
    masked: Reshaped

    @property
    def model(self) -> Tensor:
        """What the model says by itself: the softmax of its logits, at temperature 1."""
        return self.first.initial_probs

    @cached_property
    def removed_mass(self) -> float:
        """The model's probability of all the tokens that are not allowed."""
        return float(self.model[~self.allowed].sum())

    @cached_property
    def retry_chance(self) -> float:
        """How probable it is that the first draw is not allowed, so that a second one is needed."""
        return float(self.first.probs[~self.allowed].sum())

    @cached_property
    def stateful(self) -> tuple[str, ...]:
        """The stages that carry a state from draw to draw: a second draw would begin with another one."""
        return tuple(name for name in self.first.settings.active if registry.get(name).start is not None)

    @cached_property
    def retried(self) -> Tensor:
        """What drawing and trying again draws from.

        Raises:
            ValueError: for a stage with a state, which the token drawn first would move before the second draw.
        """
        if self.stateful:
            raise ValueError(
                f"{', '.join(self.stateful)} carries a state that the first draw moves: the second draw's distribution "
                "depends on the token that was not allowed. Switch it off to compare the two ways."
            )
        kept = torch.where(self.allowed, self.first.probs, 0.0)
        return kept + self.retry_chance * self.masked.probs

    @cached_property
    def total_variation(self) -> float:
        """Half the sum of the differences between the two ways, from 0 to 1.

        Raises:
            ValueError: see `retried`.
        """
        return float((self.masked.probs - self.retried).abs().sum() / 2)


def compare(
    logits: ArrayLike,
    allowed: Tensor,
    settings: SamplingSettings | None = None,
    history: History | tuple[int, ...] = (),
    state: State | None = None,
) -> Masking:
    """Reshape the logits of one position with and without a mask.

    Args:
        logits: `[V]`.
        allowed: `[V]` booleans, at least one true for a possible token.
        settings, history, state: as in `lmcore.sampling.reshape`.

    Raises:
        ValueError: see `reshape`.

    The example of two candidates, of which the better is forbidden:

    >>> allowed = torch.tensor([True, True, False, True, True])
    >>> found = compare([2.3, 1.5, 3.8, 0.5, 1.2], allowed, SamplingSettings(top_k=2))
    >>> [round(p, 4) for p in found.masked.probs.tolist()], [round(p, 4) for p in found.retried.tolist()]
    ([0.69, 0.31, 0.0, 0.0, 0.0], [0.7465, 0.2535, 0.0, 0.0, 0.0])
    >>> round(found.total_variation, 4)
    0.0566
    """
    first = reshape(logits, settings, history, state)
    return Masking(allowed, first, reshape(logits, settings, history, state, allowed=allowed))
