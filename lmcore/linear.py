"""Linear: a matrix times each position's vector."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

# Below this many weights, and above this many positions, `F.linear` is the fastest way.
_SMALL = 100_000
_MANY_POSITIONS = 128
# Up to this many positions, the next product is faster with each position's numbers side by side.
_FEW_POSITIONS = 8
# Rows of a large matrix whose products stay in the processor's cache until they are turned round or widened.
_ROWS_AT_ONCE = 4096
_ROWS_AT_ONCE_IN_HALF = 16_384


class Linear(nn.Linear):
    """`nn.Linear`, faster where one looks at a model: in float32, for one text's positions, without gradients.

    A single position is a matrix-vector product, bound by memory bandwidth, which torch runs on one thread: as a batch
    of as many slices of the matrix as there are threads, it is read at the bandwidth of all of them.

    Some positions are computed as W x^T, which the BLAS library in torch is better at than at x W^T: a whole pass of
    SmolLM2 takes .4 of the time at 3 positions, .9 at 64; one of Gemma with its large vocabulary .2 and .8.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return x W^T + b: [..., in_features] -> [..., out_features], not always contiguous."""
        weight, positions = self.weight, x.numel() // self.in_features
        if weight.numel() < _SMALL or weight.dtype != torch.float32:
            return F.linear(x, weight, self.bias)
        if positions == 1:
            y = self._one_position(x)
        elif 1 < positions <= _MANY_POSITIONS and not torch.is_grad_enabled():
            y = self._some_positions(x.reshape(positions, -1))
        else:
            return F.linear(x, weight, self.bias)
        if self.bias is not None:
            y = y + self.bias
        return y.view(*x.shape[:-1], self.out_features)

    def widened(self, x: Tensor) -> Tensor:
        """Return the same in float32 at least, without all of it in half precision beside."""
        wide = torch.promote_types(x.dtype, torch.float32)
        if x.dtype == wide or x.numel() == self.in_features or torch.is_grad_enabled():
            return self(x).to(wide)
        y = x.new_empty(*x.shape[:-1], self.out_features, dtype=wide)
        at_once = _ROWS_AT_ONCE_IN_HALF
        for part, rows in zip(y.split(at_once, -1), self.weight.split(at_once), strict=True):
            part.copy_(F.linear(x, rows))
        return y if self.bias is None else y + self.bias

    def _one_position(self, x: Tensor) -> Tensor:
        weight, threads = self.weight, torch.get_num_threads()
        size, rest = divmod(self.out_features, threads)
        slices = (weight[:-rest] if rest else weight).view(threads, size, -1)
        y = torch.bmm(x.reshape(1, 1, -1).expand(threads, 1, -1), slices.transpose(1, 2)).view(-1)
        return torch.cat((y, F.linear(x.flatten(), weight[-rest:]))) if rest else y

    def _some_positions(self, x: Tensor) -> Tensor:
        """[S, in_features] -> [S, out_features]."""
        if self.out_features <= _ROWS_AT_ONCE:
            y = torch.mm(self.weight, x.t()).t()
            return y.contiguous() if len(x) <= _FEW_POSITIONS else y
        y = x.new_empty(len(x), self.out_features)
        for part, rows in zip(y.split(_ROWS_AT_ONCE, 1), self.weight.split(_ROWS_AT_ONCE), strict=True):
            part.copy_(torch.mm(rows, x.t()).t())
        return y
