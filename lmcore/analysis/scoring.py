"""How well a model foresaw a text: rank, probability and surprisal of each token that came, loss, perplexity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from lmcore.distribution import loss_nats

_ROWS_AT_ONCE = 32  # in float64 a large vocabulary over a long text would fill the memory


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
    parts = zip(logits[:-1].split(_ROWS_AT_ONCE), came.split(_ROWS_AT_ONCE), strict=True)
    placed, nats = zip(*((ranks(rows, ids), loss_nats(rows, ids)) for rows, ids in parts), strict=True)
    return Scores(came, torch.cat(placed), torch.cat(nats))


class TopTokens(NamedTuple):
    """The n most probable tokens of S distributions, the most probable first: ids int64, probs float64, both [S, n]."""

    ids: Tensor
    probs: Tensor


def top_tokens(logits: Tensor, n: int) -> TopTokens:
    """Return the most probable tokens of each row of logits [S, V]; of equal ones the lower id comes first.

    >>> top = top_tokens(torch.tensor([[0.0, 1.0, 1.0, 0.0]]), 3)
    >>> top.ids.tolist(), round(top.probs.sum().item(), 4)
    ([[1, 2, 0]], 0.8655)
    """
    n = min(n, logits.shape[-1])
    least = logits.topk(n).values[:, -1:]
    ids = []
    for row, at_least in zip(logits, logits >= least, strict=True):
        candidates = at_least.nonzero()[:, 0]
        ids.append(candidates[row[candidates].argsort(descending=True, stable=True)[:n]])
    found = torch.stack(ids)
    return TopTokens(found, _probs(logits, found))


def token_probs(logits: Tensor, token_id: int) -> Tensor:
    """Return the probability of one token in each row of logits [S, V]: float64 [S].

    >>> token_probs(torch.zeros(2, 4), 3).tolist()
    [0.25, 0.25]
    """
    return _probs(logits, torch.full((len(logits), 1), token_id))[:, 0]


def _probs(logits: Tensor, ids: Tensor) -> Tensor:
    """Return the probabilities of some ids [S, n] of each row of logits [S, V], float64 [S, n]."""
    normaliser = torch.cat([rows.double().logsumexp(-1, keepdim=True) for rows in logits.split(_ROWS_AT_ONCE)])
    return (logits.gather(-1, ids).double() - normaliser).exp()


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
