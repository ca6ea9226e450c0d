"""Linear: a matrix times each position's vector."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# Below this many weights, splitting a matrix costs more than it saves.
_SPLIT_FROM = 100_000


class Linear(nn.Linear):
    """`nn.Linear`, with all threads at work for a single position too.

    Generating one token at a time is a vector-matrix product, bound by memory bandwidth; in float32
    torch runs it on one thread. As a batch of as many slices of the matrix as there are threads, it
    is read at the bandwidth of all of them.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return x W^T + b: [..., in_features] -> [..., out_features]."""
        weight = self.weight
        if x.numel() != self.in_features or weight.numel() < _SPLIT_FROM or weight.dtype != torch.float32:
            return F.linear(x, weight, self.bias)
        threads = torch.get_num_threads()
        rest = self.out_features % threads
        slices = weight[: self.out_features - rest].unflatten(0, (threads, -1))
        y = torch.bmm(x.reshape(1, 1, -1).expand(threads, 1, -1), slices.transpose(1, 2)).flatten()
        if rest:
            y = torch.cat((y, F.linear(x.flatten(), weight[-rest:])))
        if self.bias is not None:
            y = y + self.bias
        return y.view(*x.shape[:-1], self.out_features)
