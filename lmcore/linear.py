"""Linear: `nn.Linear` with two shortcuts for looking at a model on a few cores.

Nothing depends on this file: with `from torch.nn import Linear` in its place the model gives the same numbers, up to
float32 rounding, and the first numbers after a prompt come later. Measured on two cores, whole passes, in float32:

    positions        1      5     16     32     64
    SmolLM2 135M   1.0    1.3    1.3    1.3    1.1    times as fast as with nn.Linear
    Gemma 3 270M   1.3    1.5    1.5    1.5
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

_FEW_POSITIONS = 32  # for more, the second shortcut brings less than a quarter
_MANY_ROWS = 20_000  # only the matrix of a whole vocabulary is worth the first


class Linear(nn.Linear):
    """`nn.Linear`: [..., in_features] -> [..., out_features], not always contiguous."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x W^T + b."""
        positions = x.numel() // self.in_features
        if self.weight.dtype == torch.float32 and positions == 1 and self.out_features >= _MANY_ROWS:
            y = self._by_slices(x.flatten())
        elif self.weight.dtype == torch.float32 and 1 < positions <= _FEW_POSITIONS:
            y = (self.weight @ x.reshape(positions, -1).T).T  # BLAS is better at W x^T than at x W^T
        else:
            return super().forward(x)
        y = y if self.bias is None else y + self.bias
        return y.reshape(*x.shape[:-1], self.out_features)

    def _by_slices(self, x: Tensor) -> Tensor:
        """Multiply one vector by as many slices of the matrix as there are threads: torch takes one thread for it."""
        threads = torch.get_num_threads()
        rows = self.out_features // threads
        slices = self.weight[: rows * threads].view(threads, rows, -1)
        y = torch.bmm(x.expand(threads, 1, -1), slices.transpose(1, 2)).flatten()
        return torch.cat((y, self.weight[rows * threads :] @ x))
