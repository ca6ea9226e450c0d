"""One query of one attention head, worked out step by step."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from lmcore.trace import Trace


@dataclass(frozen=True)
class QueryAttention:
    """What one query did with S keys. All tensors are float64.

    Attributes:
        kv_head: which key/value head this head reads (its own, unless heads share).
        q: [d_head], the query as it meets the keys (after RoPE where there is one).
        k: [S, d_head], the keys, likewise.
        products: [S], q · k.
        scaled: [S], q · k / sqrt(d_head).
        bias: [S], what the position encoding adds to the scores (alibi, relative); None for the others.
        scores: [S], scaled + bias.
        hidden: bool [S], True for the keys in the query's future.
        weights: [S], softmax of the scores over the keys that are not hidden; 0 for those that are.
        v: [S, d_head], the values.
        weighted_values: [S, d_head], weight times value.
        z: [d_head], the sum of the weighted values.
    """

    kv_head: int
    q: Tensor
    k: Tensor
    products: Tensor
    scaled: Tensor
    bias: Tensor | None
    scores: Tensor
    hidden: Tensor
    weights: Tensor
    v: Tensor
    weighted_values: Tensor
    z: Tensor


def attention_of_query(trace: Trace, block: int, head: int, position: int) -> QueryAttention:
    """Work out the attention of one query in float64 from the traced q, k and v (Vaswani et al. 2017, eq. 1).

    Args:
        trace: of a pass over one sequence.
        block: index of the block.
        head: index of the query head.
        position: the query's position.

    Raises:
        KeyError: the trace has no such block.
        IndexError: it has no such head or position.
    """
    attn = f"blocks.{block}.attn"
    rotated = "_rotated" if f"{attn}.q_rotated" in trace else ""
    queries, keys = trace[f"{attn}.q{rotated}"], trace[f"{attn}.k{rotated}"]
    kv_head = head // (len(queries) // len(keys))
    q, k = queries[head, position].double(), keys[kv_head].double()
    v = trace[f"{attn}.v"][kv_head].double()
    products = k @ q
    scaled = products / math.sqrt(len(q))
    bias = trace["position_bias"][head, position].double() if "position_bias" in trace else None
    scores = scaled if bias is None else scaled + bias
    hidden = torch.arange(len(k)) > position
    weights = scores.masked_fill(hidden, -math.inf).softmax(-1)
    weighted = weights[:, None] * v
    return QueryAttention(kv_head, q, k, products, scaled, bias, scores, hidden, weights, v, weighted, weighted.sum(0))
