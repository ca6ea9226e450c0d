"""Linear: a matrix times each position's vector."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# Below this many weights a matrix stays in cache and splitting it costs more than it saves.
_SPLIT_FROM = 250_000


class Linear(nn.Linear):
    """`nn.Linear`, with all threads at work for a single position too.

    Generating one token at a time is a matrix-vector product, bound by memory bandwidth; torch runs
    it on one thread. Taking the rows of the matrix as a batch of as many slices as there are threads
    reads them at the bandwidth of all of them.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return x W^T + b: [..., in_features] -> [..., out_features]."""
        threads = torch.get_num_threads()
        if x.numel() != self.in_features or threads == 1 or self.weight.numel() < _SPLIT_FROM:
            return F.linear(x, self.weight, self.bias)
        rest = self.out_features % threads
        slices = self.weight[: self.out_features - rest].unflatten(0, (threads, -1))
        y = (slices @ x.reshape(-1, 1)).flatten()
        if rest:
            y = torch.cat((y, F.linear(x.flatten(), self.weight[-rest:])))
        if self.bias is not None:
            y = y + self.bias
        return y.view(*x.shape[:-1], self.out_features)
