"""ln P of a few tokens of many distributions, without writing out all of V for each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lmcore.distribution.checks import check_logits


@dataclass(frozen=True)
class Normaliser:
    """What takes a row of logits z to log-probabilities: ln P_i = (z_i - max z) - ln sum_j exp(z_j - max z).

    Attributes:
        largest: float64 [S, 1], the largest logit of each row.
        log_sum: float64 [S, 1], the logarithm of the sum.
    """

    largest: Tensor
    log_sum: Tensor

    @classmethod
    def of(cls, logits: Tensor) -> Normaliser:
        """Read S rows of logits [S, V] once.

        Raises:
            ValueError: see `check_logits`.

        >>> Normaliser.of(torch.zeros(1, 4)).log_sum.exp()
        tensor([[4.]], dtype=torch.float64)
        """
        rows = logits.detach().numpy()
        largest, sums = np.empty((len(rows), 1)), np.empty((len(rows), 1))
        powers = np.empty(logits.shape[-1])
        # numpy, a row at a time: what fits the cache is summed several times as fast as by torch's threads.
        with np.errstate(invalid="ignore"):
            for index, row in enumerate(rows):
                largest[index] = row.max()
                np.subtract(row, largest[index], out=powers)
                sums[index] = np.exp(powers, out=powers).sum()
        log_sum = torch.from_numpy(np.log(sums))
        if not log_sum.isfinite().all():
            check_logits(logits)  # names what is wrong with them
        return cls(torch.from_numpy(largest), log_sum)

    def log_probs(self, logits: Tensor) -> Tensor:
        """Return ln P, float64 [S, n], of some of each row's logits [S, n]."""
        return (logits.double() - self.largest) - self.log_sum
