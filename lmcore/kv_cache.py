"""KV cache: the keys and values of the tokens already seen, so that each is computed once."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from lmcore.config import ModelConfig


class LayerCache:
    """Keys and values of one block: two buffers [..., n_kv_heads, capacity, d_head], filled from the left."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        self._keys = keys
        self._values = values

    def extend(self, start: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Write k and v [..., n_kv_heads, S, d_head] from position `start` on; return all of both up to there."""
        stop = start + k.shape[-2]
        self._keys[..., start:stop, :] = k
        self._values[..., start:stop, :] = v
        return self._keys[..., :stop, :], self._values[..., :stop, :]


class KVCache:
    """The cache of a whole model for one sequence, or for a batch of sequences of equal length.

    A forward pass with a cache takes only the new ids, continues at position `length`, and
    advances it. `truncate` takes tokens back, so that a generation can be rewound.

    Args:
        config: the model's config.
        capacity: the most tokens it can hold; context_length when left out.
        batch: the leading batch axis, e.g. (4,); none for a single sequence.
        dtype: of keys and values: that of the model's weights.
    """

    def __init__(
        self,
        config: ModelConfig,
        capacity: int | None = None,
        batch: tuple[int, ...] = (),
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.capacity = config.context_length if capacity is None else min(capacity, config.context_length)
        if self.capacity < 1:
            raise ValueError(f"capacity must be at least 1 token, got {capacity}.")
        self.length = 0
        shape = (config.n_layers, 2, *batch, config.n_kv_heads, self.capacity, config.d_head)
        self._hold(torch.zeros(shape, dtype=dtype))

    def _hold(self, buffer: Tensor) -> None:
        self._buffer = buffer
        self._layers = [LayerCache(keys, values) for keys, values in buffer]

    def __iter__(self) -> Iterator[LayerCache]:
        """Iterate over the caches of the blocks, in order."""
        return iter(self._layers)

    def truncate(self, length: int) -> None:
        """Forget all tokens from position `length` on.

        Raises:
            ValueError: when fewer tokens than that are held.
        """
        if not 0 <= length <= self.length:
            raise ValueError(f"length must lie between 0 and the {self.length} tokens in the cache, got {length}.")
        self.length = length

    def select(self, rows: Sequence[int]) -> KVCache:
        """Return a new cache for a batch [len(rows)] in which sequence i is a copy of row rows[i] of this one.

        A cache of a single sequence counts as a batch of one. So one prompt can be continued in several ways, and
        of several continuations some kept, others doubled (beam search).
        """
        selected = copy.copy(self)
        with torch.inference_mode():
            batch = self._buffer if self._buffer.dim() == 6 else self._buffer.unsqueeze(2)  # [L, 2, B, G, K, d_head]
            selected._hold(batch[:, :, list(rows)])
        return selected

    @property
    def nbytes(self) -> int:
        """Bytes in use for the tokens held so far."""
        return self._buffer.nbytes * self.length // self.capacity
