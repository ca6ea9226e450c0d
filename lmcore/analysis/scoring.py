"""How well a model foresaw a text: rank, probability and surprisal of each token that came, loss, perplexity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lmcore.distribution import loss_nats


@dataclass(frozen=True)
class Scores:
    """A text of S tokens under a model; entry i is about token i + 1, which position i foresees.

    Attributes:
        token_ids: int64 [S - 1], the tokens that came.
        ranks: int64 [S - 1], 1 for the token held most probable.
        nats: float64 [S - 1], surprisal -ln P; its mean is the loss.
    """

    token_ids: Tensor
    ranks: Tensor
    nats: Tensor

    @property
    def probs(self) -> Tensor:
        """P of each token that came, float64 [S - 1]."""
        return (-self.nats).exp()

    @property
    def bits(self) -> Tensor:
        """Surprisal in bits, -log2 P, float64 [S - 1]."""
        return self.nats / math.log(2)

    @property
    def loss(self) -> float:
        """Mean of -ln P in nats per token."""
        return self.nats.mean().item()

    @property
    def perplexity(self) -> float:
        """exp(loss): the number of equally likely tokens that would be as surprising."""
        return math.exp(self.loss)


def score(logits: Tensor, ids: Sequence[int] | Tensor) -> Scores:
    """Score a text by the logits a model gave for it.

    Args:
        logits: [S, V], of a pass over `ids`.
        ids: the S tokens of the text, at least 2: nothing foresees the first.

    Raises:
        ValueError: fewer than 2 tokens, or not one row of logits a token.

    >>> scores = score(torch.zeros(3, 4), [0, 1, 2])
    >>> scores.ranks.tolist(), scores.bits.tolist(), round(scores.perplexity, 9)
    ([2, 3], [2.0, 2.0], 4.0)
    """
    tokens = torch.as_tensor(ids, dtype=torch.int64)
    if tokens.ndim != 1 or len(tokens) < 2:
        raise ValueError(f"ids has shape {list(tokens.shape)}: give one text of at least 2 tokens, the first is given.")
    if logits.ndim != 2 or len(logits) != len(tokens):
        raise ValueError(f"logits has shape {list(logits.shape)} for {len(tokens)} ids: give one row a token.")
    came = tokens[1:]
    return Scores(came, ranks(logits[:-1], came), loss_nats(logits[:-1], came))


def ranks(logits: Tensor, token_ids: Tensor) -> Tensor:
    """Return the rank of one token in each row of logits; of equal tokens the lower id comes first.

    Args:
        logits: [..., V].
        token_ids: int64 [...], one for each row.

    Returns:
        int64 [...], 1 for the largest logit.

    >>> ranks(torch.tensor([[0.0, 2.0, 0.0]]), torch.tensor([2])).tolist()
    [3]
    """
    own = logits.gather(-1, token_ids.unsqueeze(-1))
    lower_id = torch.arange(logits.shape[-1]) < token_ids.unsqueeze(-1)
    return 1 + ((logits > own) | ((logits == own) & lower_id)).sum(-1)
