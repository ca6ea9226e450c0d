"""How well a model predicted a text: rank, probability and surprisal of each actual token, loss, perplexity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from lmcore.analysis.logits.normaliser import Normaliser
from lmcore.distribution import largest


@dataclass(frozen=True)
class Scores:
    """A text of S tokens under a model; entry i is about token i + 1, which position i foresees.

    Attributes:
        token_ids: int64 [S - 1], the tokens that came.
        ranks: int64 [S - 1], 1 for the token held most probable.
        nats: float64 [S - 1], surprisal -ln P; its mean is the loss.
        normaliser: of all S positions; with it other tokens' probabilities are quickly read.
    """

    token_ids: Tensor
    ranks: Tensor
    nats: Tensor
    normaliser: Normaliser

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
    came, normaliser = tokens[1:], Normaliser.of(logits)
    log_probs = normaliser.log_probs(logits.gather(-1, tokens.roll(-1).unsqueeze(-1)))[:-1, 0]
    return Scores(came, ranks(logits[:-1], came), -log_probs, normaliser)


class TopTokens(NamedTuple):
    """The n most probable tokens of S distributions, the most probable first: ids int64, probs float64, both [S, n]."""

    ids: Tensor
    probs: Tensor


def top_tokens(logits: Tensor, n: int, normaliser: Normaliser | None = None) -> TopTokens:
    """Return the most probable tokens of each row of logits [S, V]; of equal ones the lower id comes first.

    Args:
        logits: [S, V].
        n: how many; more than V gives all V.
        normaliser: of these rows, when it is known already.

    >>> top = top_tokens(torch.tensor([[0.0, 1.0, 1.0, 0.0]]), 3)
    >>> top.ids.tolist(), round(top.probs.sum().item(), 4)
    ([[1, 2, 0]], 0.8655)
    """
    n = min(n, logits.shape[-1])
    best = logits.topk(min(n + 1, logits.shape[-1]))  # one more than asked: it shows whether the last is tied
    ids = best.indices[:, :n].sort(-1).values
    for row in (best.values[:, n:] == best.values[:, n - 1 : n]).nonzero()[:, 0].tolist():
        ids[row] = largest(logits[row], n)
    values = logits.gather(-1, ids)
    order = values.sort(dim=-1, descending=True, stable=True).indices  # ids rise, so stable puts lower ids first
    found = ids.gather(-1, order)
    return TopTokens(found, _probs(logits, found, normaliser))


def token_probs(logits: Tensor, token_id: int, normaliser: Normaliser | None = None) -> Tensor:
    """Return the probability of one token in each row of logits [S, V]: float64 [S]; arguments as in `top_tokens`.

    >>> token_probs(torch.zeros(2, 4), 3).tolist()
    [0.25, 0.25]
    """
    return _probs(logits, torch.full((len(logits), 1), token_id), normaliser)[:, 0]


def _probs(logits: Tensor, ids: Tensor, normaliser: Normaliser | None) -> Tensor:
    """Return the probabilities of some ids [S, n] of each row of logits [S, V], float64 [S, n]."""
    return (normaliser or Normaliser.of(logits)).log_probs(logits.gather(-1, ids)).exp()


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
    rows, wanted = logits.detach().reshape(-1, logits.shape[-1]).numpy(), token_ids.flatten().tolist()
    found = [_rank(row, token_id) for row, token_id in zip(rows, wanted, strict=True)]
    return torch.tensor(found, dtype=torch.int64).reshape(token_ids.shape)


def _rank(row: np.ndarray, token_id: int) -> int:
    """Return one rank, counted by numpy: twenty times as fast as torch where a row at a time fits the cache."""
    own = row[token_id]
    return 1 + int(np.count_nonzero(row > own)) + int(np.count_nonzero(row[:token_id] == own))
