"""KV cache: the keys and values of the tokens already seen, so that each is computed once."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from lmcore.config import ModelConfig
from lmcore.quantisation import KINDS
from lmcore.trace import Trace

_FIRST_ROOM = 16  # tokens


class LayerCache:
    """Keys and values of one block: a buffer [2, ..., n_kv_heads, room, d_head], filled from the left.

    The room doubles whenever the text outgrows it, up to `capacity` tokens.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._buffer: Tensor | None = None

    def extend(self, start: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Write k and v [..., n_kv_heads, S, d_head] from position `start` on; return all of both up to there."""
        stop = start + k.shape[-2]
        if self._buffer is None or stop > self._buffer.shape[-2]:
            self._grow(start, stop, k)
        assert self._buffer is not None
        keys, values = self._buffer[..., :stop, :]
        keys[..., start:, :] = k
        values[..., start:, :] = v
        return keys, values

    def select(self, rows: Sequence[int]) -> LayerCache:
        """Return a new cache of copies of some rows of the batch; a single sequence is a batch of one."""
        selected = LayerCache(self._capacity)
        if self._buffer is not None:
            batch = self._buffer if self._buffer.dim() == 5 else self._buffer.unsqueeze(1)  # [2, B, G, room, d_head]
            selected._buffer = batch[:, list(rows)]
        return selected

    @property
    def reserved_nbytes(self) -> int:
        """Bytes of the buffer."""
        return 0 if self._buffer is None else self._buffer.nbytes

    @property
    def nbytes_per_token(self) -> int:
        """Bytes of it that one token takes."""
        return 0 if self._buffer is None else self._buffer[..., :1, :].nbytes

    def _grow(self, start: int, stop: int, like: Tensor) -> None:
        held, room = self._buffer, _FIRST_ROOM
        while room < stop:
            room *= 2
        shape = (2, *like.shape[:-2], min(room, self._capacity), like.shape[-1])
        with torch.inference_mode(False):  # a cache begun while looking can go on in any mode
            self._buffer = torch.empty(shape, dtype=like.dtype, device=like.device)
        if held is not None:
            self._buffer[..., :start, :] = held[..., :start, :]


class Int8LayerCache(LayerCache):
    """Keys and values of one block in 8 bits: each vector of a head has its own scale, max |x| / 127, in float32."""

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity)
        self._codes, self._scales = LayerCache(capacity), LayerCache(capacity)

    def extend(self, start: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Write k and v as 8-bit numbers, and return what all up to there are read back as."""
        (k_codes, k_scales), (v_codes, v_scales) = _in_int8(k), _in_int8(v)
        k_codes, v_codes = self._codes.extend(start, k_codes, v_codes)
        k_scales, v_scales = self._scales.extend(start, k_scales, v_scales)
        return k_codes * k_scales, v_codes * v_scales

    def select(self, rows: Sequence[int]) -> Int8LayerCache:
        """Return a new cache of copies of some rows of the batch; a single sequence is a batch of one."""
        selected = Int8LayerCache(self._capacity)
        selected._codes, selected._scales = self._codes.select(rows), self._scales.select(rows)
        return selected

    @property
    def reserved_nbytes(self) -> int:
        """Bytes of the buffers."""
        return self._codes.reserved_nbytes + self._scales.reserved_nbytes

    @property
    def nbytes_per_token(self) -> int:
        """Bytes of them that one token takes."""
        return self._codes.nbytes_per_token + self._scales.nbytes_per_token


def _in_int8(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return codes int8 and scales [..., 1] in the dtype of x [..., d_head]."""
    blocks = KINDS["int8"].blocks_of(x)
    return blocks.codes.view(x.shape), blocks.scale.view(*x.shape[:-1], 1).to(x.dtype)


def through_int8(x: Tensor) -> Tensor:
    """Return keys or values [..., d_head] as a cache of 8-bit numbers gives them back."""
    codes, scales = _in_int8(x)
    return codes * scales


class KVCache:
    """The cache of a whole model for one sequence, or for a batch of sequences of equal length.

    A forward pass with a cache takes only the new ids, continues at position `length`, and
    advances it. `truncate` takes tokens back, so that a generation can be rewound.

    It takes memory for the tokens it holds, at most twice over, and none before the first.

    Args:
        config: the model's config.
        capacity: the most tokens it can hold; context_length when left out.
    """

    def __init__(self, config: ModelConfig, capacity: int | None = None) -> None:
        self.capacity = config.context_length if capacity is None else min(capacity, config.context_length)
        if self.capacity < 1:
            raise ValueError(f"capacity must be at least 1 token, got {capacity}.")
        self.length = 0
        layer_cache = Int8LayerCache if config.int8_cache else LayerCache
        self._layers = [layer_cache(self.capacity) for _ in range(config.n_layers)]

    @classmethod
    def of_pass(cls, config: ModelConfig, trace: Trace) -> KVCache:
        """Return the cache of a sequence that a traced pass without one has run over.

        Args:
            config: the model's config.
            trace: of the pass, over one sequence.
        """
        cache = cls(config)
        for i, layer in enumerate(cache):
            names = (f"blocks.{i}.attn.{name}" for name in ("k_rotated", "k_normed", "k"))
            keys = next(trace.recorded(name) for name in names if name in trace)
            layer.extend(0, keys, trace.recorded(f"blocks.{i}.attn.v"))
        cache.length = keys.shape[-2]
        return cache

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
        selected._layers = [layer.select(rows) for layer in self._layers]
        return selected

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and values of the tokens it holds."""
        return len(self._layers) * self._layers[0].nbytes_per_token * self.length

    @property
    def reserved_nbytes(self) -> int:
        """Bytes of memory it takes, room for tokens to come included."""
        return len(self._layers) * self._layers[0].reserved_nbytes
