"""Embedding lookup: row t of a table is the vector of token t."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class TokenEmbedding(nn.Module):
    """The table E [vocab_size, d_model]; a lookup is E[ids].

    >>> table = TokenEmbedding(vocab_size=5, d_model=3)
    >>> table(torch.tensor([4, 2])).shape
    torch.Size([2, 3])
    """

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))

    def forward(self, ids: Tensor) -> Tensor:
        """Return the vectors [..., S, d_model] of ids [..., S]."""
        return nn.functional.embedding(ids, self.weight)


def one_hot_lookup(ids: Tensor, table: Tensor) -> Tensor:
    """Look up by multiplying one-hot rows with the table: the same vectors, at V times the work.

    Args:
        ids: token ids [S].
        table: embedding table [V, d_model].

    Returns:
        The vectors [S, d_model], equal to `table[ids]`.
    """
    return nn.functional.one_hot(ids, table.shape[0]).to(table.dtype) @ table
