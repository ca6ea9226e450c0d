"""Causal self-attention, written out: scores, mask, softmax, weighted sum."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lmcore.config import ModelConfig
from lmcore.kv_cache import LayerCache, through_int8
from lmcore.linear import Linear
from lmcore.norm import make_head_norm
from lmcore.position import Rotation
from lmcore.scores import grouped_product, mask, pattern, scaled_scores
from lmcore.trace import SILENT, Recorder

_QUERIES = ("head", "position", "d_head")
_KEYS = ("kv_head", "position", "d_head")
_KEPT = ("kv_head", "key", "d_head")
_SQUARE = ("head", "query", "key")


@dataclass(frozen=True)
class AttentionContext:
    """What all blocks, or all local and all other blocks, share in one forward pass.

    Attributes:
        start: position of the first new token; the tokens before it are in the cache.
        rotation: RoPE's rotation for the new positions, or None.
        score_bias: [n_heads, S, start + S] to add to the scores, or None.
        visible: bool [S, start + S], True where a query sees a key.
    """

    start: int
    rotation: Rotation | None
    score_bias: Tensor | None
    visible: Tensor


class Attention(nn.Module):
    """Multi-head attention in which n_heads / n_kv_heads query heads share each key/value head.

    Vaswani et al. 2017, section 3.2; Ainslie et al. 2023, "GQA", section 2.2.

        x ─ q ─ (norm) ─ (rotate) ─┐
        x ─ k ─ (norm) ─ (rotate) ─┴ q·k / sqrt(d_head) ─ (cap) ─ (+ bias) ─ mask ─ softmax (and sink) ─┐
        x ─ v ──────────────────────────────────────────────────────────────────────────────────────────┴ sum ─ out
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.n_heads, self.n_kv_heads, self.d_head = config.n_heads, config.n_kv_heads, config.d_head
        self.q = Linear(config.d_model, self.n_heads * self.d_head, bias=config.attention_bias)
        self.k = Linear(config.d_model, self.n_kv_heads * self.d_head, bias=config.attention_bias)
        self.v = Linear(config.d_model, self.n_kv_heads * self.d_head, bias=config.attention_bias)
        self.q_norm = make_head_norm(config, self.n_heads) if config.qk_norm else None
        self.k_norm = make_head_norm(config, self.n_kv_heads) if config.qk_norm else None
        self.sinks = nn.Parameter(torch.zeros(self.n_heads)) if config.attention_sinks else None
        self.out = Linear(self.n_heads * self.d_head, config.d_model, bias=config.attention_out_bias)
        self.scale = config.score_scale
        self.softcap = config.attention_softcap
        self.int8_cache = config.int8_cache

    def forward(
        self, x: Tensor, context: AttentionContext, cache: LayerCache | None = None, trace: Recorder = SILENT
    ) -> Tensor:
        """Mix x [..., S, d_model] over positions; returns the same shape."""
        q = trace.record("q", self._split(self.q(x), self.n_heads), _QUERIES)  # [..., H, S, d_head]
        k = trace.record("k", self._split(self.k(x), self.n_kv_heads), _KEYS)  # [..., G, S, d_head]
        v = trace.record("v", self._split(self.v(x), self.n_kv_heads), _KEYS)
        if self.q_norm is not None and self.k_norm is not None:
            q = trace.record("q_normed", self.q_norm(q), _QUERIES)
            k = trace.record("k_normed", self.k_norm(k), _KEYS)
        if context.rotation is not None:
            q = trace.record("q_rotated", context.rotation(q), _QUERIES)
            k = trace.record("k_rotated", context.rotation(k), _KEYS)
        if cache is not None:
            k, v = cache.extend(context.start, k, v)  # [..., G, K, d_head]
        elif self.int8_cache:
            k, v = through_int8(k), through_int8(v)  # as a cache would give them back
        if self.int8_cache:
            k, v = trace.record("k_kept", k, _KEPT), trace.record("v_kept", v, _KEPT)

        products = grouped_product(q, k.transpose(-1, -2))  # [..., H, S, K]
        scores = scaled_scores(products, self.scale, self.softcap, context.score_bias)
        scores = trace.record("scores", scores, _SQUARE)
        visible = trace.record("visible", context.visible, ("query", "key"))
        scores = trace.record("masked_scores", mask(scores, visible), _SQUARE)
        sinks = None if self.sinks is None else trace.record("sinks", self.sinks, ("head",))
        weights = trace.record("pattern", pattern(scores, sinks), _SQUARE)
        z = trace.record("z", grouped_product(weights, v), ("head", "query", "d_head"))
        return trace.record("out", self.out(z.transpose(-3, -2).flatten(-2)), ("position", "d_model"))

    def _split(self, x: Tensor, n_heads: int) -> Tensor:
        """[..., S, n_heads * d_head] -> [..., n_heads, S, d_head]."""
        return x.unflatten(-1, (n_heads, self.d_head)).transpose(-3, -2)
