"""Causal self-attention, written out: scores, mask, softmax, weighted sum."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lmcore.config import ModelConfig
from lmcore.kv_cache import LayerCache
from lmcore.linear import Linear
from lmcore.norm import RMSNorm
from lmcore.position import Rotation
from lmcore.trace import SILENT, Recorder


@dataclass(frozen=True)
class AttentionContext:
    """What all blocks, or all local and all other blocks, share in one forward pass.

    Attributes:
        start: position of the first new token; the tokens before it are in the cache.
        rotation: RoPE's rotation for the new positions, or None.
        score_bias: [n_heads, S, start + S] to add to the scores, or None.
        hidden: [S, start + S], -inf where a query does not see a key, else 0; None when it sees them all.
    """

    start: int
    rotation: Rotation | None
    score_bias: Tensor | None
    hidden: Tensor | None


class Attention(nn.Module):
    """Multi-head attention in which n_heads / n_kv_heads query heads share each key/value head.

    Vaswani et al. 2017, section 3.2; Ainslie et al. 2023, "GQA", section 2.2.

        x ─ q ─ (norm) ─ (rotate) ─┐
        x ─ k ─ (norm) ─ (rotate) ─┴ q·k / sqrt(d_head) ─ (cap) ─ (+ bias) ─ mask ─ softmax ─┐
        x ─ v ───────────────────────────────────────────────────────────────────────────────┴ weighted sum ─ out
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.n_heads, self.n_kv_heads, self.d_head = config.n_heads, config.n_kv_heads, config.d_head
        self.q = Linear(config.d_model, self.n_heads * self.d_head, bias=config.attention_bias)
        self.k = Linear(config.d_model, self.n_kv_heads * self.d_head, bias=config.attention_bias)
        self.v = Linear(config.d_model, self.n_kv_heads * self.d_head, bias=config.attention_bias)
        self.q_norm = RMSNorm(self.d_head, config.norm_eps, config.norm_unit_offset) if config.qk_norm else None
        self.k_norm = RMSNorm(self.d_head, config.norm_eps, config.norm_unit_offset) if config.qk_norm else None
        self.out = Linear(self.n_heads * self.d_head, config.d_model, bias=config.attention_out_bias)
        self.scale = 1 / math.sqrt(self.d_head) if config.attention_scale is None else config.attention_scale
        self.softcap = config.attention_softcap

    def forward(
        self, x: Tensor, context: AttentionContext, cache: LayerCache | None = None, trace: Recorder = SILENT
    ) -> Tensor:
        """Mix x [..., S, d_model] over positions; returns the same shape."""
        q = self._split(self.q(x), self.n_heads)  # [..., H, S, d_head]
        k = self._split(self.k(x), self.n_kv_heads)  # [..., G, S, d_head]
        v = self._split(self.v(x), self.n_kv_heads)
        q = trace.record("q", q, ("head", "position", "d_head"))
        k = trace.record("k", k, ("kv_head", "position", "d_head"))
        v = trace.record("v", v, ("kv_head", "position", "d_head"))
        q_norm, k_norm = self.q_norm, self.k_norm
        if q_norm is not None and k_norm is not None:
            q = trace.record("q_normed", q_norm(q), ("head", "position", "d_head"), lambda of: q_norm(of("q")))
            k = trace.record("k_normed", k_norm(k), ("kv_head", "position", "d_head"), lambda of: k_norm(of("k")))
        if context.rotation is not None:
            rotation, before = context.rotation, "" if q_norm is None else "_normed"
            q = trace.record(
                "q_rotated", rotation(q), ("head", "position", "d_head"), lambda of: rotation(of(f"q{before}"))
            )
            k = trace.record(
                "k_rotated", rotation(k), ("kv_head", "position", "d_head"), lambda of: rotation(of(f"k{before}"))
            )
        if cache is not None:
            k, v = cache.extend(context.start, k, v)

        scores = self._by_group(q) @ k.transpose(-1, -2)  # [..., G, H/G * S, K]
        scores = self._by_head(scores).mul_(self.scale)  # [..., H, S, K]
        if self.softcap is not None:
            scores = soft_cap(scores, self.softcap)
        if context.score_bias is not None:
            scores = scores + context.score_bias
        axes, hidden = ("head", "query", "key"), context.hidden
        scores = trace.record("scores", scores, axes)
        scores = trace.record("masked_scores", mask(scores, hidden), axes, lambda of: mask(of("scores"), hidden))
        pattern = trace.record("pattern", scores.softmax(-1), axes, lambda of: of("masked_scores").softmax(-1))
        z = self._by_head(self._by_group(pattern) @ v)  # [..., H, S, d_head]
        z = trace.record("z", z, ("head", "query", "d_head"))
        return trace.record("out", self.out(z.transpose(-3, -2).flatten(-2)), ("position", "d_model"))

    def _split(self, x: Tensor, n_heads: int) -> Tensor:
        """[..., S, n_heads * d_head] -> [..., n_heads, S, d_head]."""
        return x.view(*x.shape[:-1], n_heads, self.d_head).transpose(-3, -2)

    def _by_group(self, x: Tensor) -> Tensor:
        """[..., H, S, n] -> [..., G, H/G * S, n]: the query heads of a group side by side, k and v not repeated."""
        if self.n_kv_heads == self.n_heads:
            return x
        return x.reshape(*x.shape[:-3], self.n_kv_heads, -1, x.shape[-1])

    def _by_head(self, x: Tensor) -> Tensor:
        """[..., G, H/G * S, n] -> [..., H, S, n], the way back."""
        if self.n_kv_heads == self.n_heads:
            return x
        return x.reshape(*x.shape[:-3], self.n_heads, -1, x.shape[-1])


def mask(scores: Tensor, hidden: Tensor | None) -> Tensor:
    """Return the scores with -inf where a key is hidden.

    >>> mask(torch.ones(1, 2, 2), hidden_keys(0, 2)).tolist()
    [[[1.0, -inf], [1.0, 1.0]]]
    """
    return scores if hidden is None else scores + hidden.to(scores.dtype)  # a sixth of the time of filling


def soft_cap(x: Tensor, cap: float) -> Tensor:
    """Squeeze x smoothly between -cap and cap: cap * tanh(x / cap) (Gemma 2 report, section 2).

    >>> soft_cap(torch.tensor([0.0, 1e6]), 50.0).tolist()
    [0.0, 50.0]
    """
    return cap * torch.tanh(x / cap)


def hidden_keys(start: int, length: int, window: int | None = None) -> Tensor | None:
    """Return [length, start + length]: -inf where a query does not see a key, else 0; None when nothing is hidden.

    Hidden are the keys of the future and, with a window, those `window` or more positions back.

    >>> hidden_keys(1, 2).tolist()
    [[0.0, 0.0, -inf], [0.0, 0.0, 0.0]]
    >>> hidden_keys(2, 1, window=2).tolist()
    [[-inf, 0.0, 0.0]]
    """
    windowed = window is not None and start + length > window
    if length == 1 and not windowed:
        return None
    everything = torch.full((length, start + length), -math.inf)
    hidden = everything.triu(start + 1)
    if windowed and window is not None:
        hidden += everything.tril(start - window)
    return hidden
