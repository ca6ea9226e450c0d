"""One query of one attention head, worked out step by step."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from lmcore.attention import soft_cap
from lmcore.config import ModelConfig
from lmcore.trace import Trace


@dataclass(frozen=True)
class QueryAttention:
    """What one query did with S keys. All tensors are float64.

    Attributes:
        kv_head: which key/value head this head reads (its own, unless heads share).
        q: [d_head], the query as it meets the keys (after q/k norm and RoPE where there are any).
        k: [S, d_head], the keys, likewise.
        products: [S], q · k.
        scale: what the products are multiplied by: 1 / sqrt(d_head), unless the model has a scale of its own.
        scaled: [S], q · k times scale, soft-capped where the model does so.
        bias: [S], what the position encoding adds to the scores (alibi, relative); None for the others.
        scores: [S], scaled + bias.
        hidden: bool [S], True for the keys in the query's future and those a local block's window leaves out.
        weights: [S], softmax of the scores over the keys that are not hidden; 0 for those that are.
        v: [S, d_head], the values.
        weighted_values: [S, d_head], weight times value.
        z: [d_head], the sum of the weighted values.
    """

    kv_head: int
    q: Tensor
    k: Tensor
    products: Tensor
    scale: float
    scaled: Tensor
    bias: Tensor | None
    scores: Tensor
    hidden: Tensor
    weights: Tensor
    v: Tensor
    weighted_values: Tensor
    z: Tensor


def attention_of_query(trace: Trace, config: ModelConfig, block: int, head: int, position: int) -> QueryAttention:
    """Work out the attention of one query in float64 from the traced q, k and v (Vaswani et al. 2017, eq. 1).

    Args:
        trace: of a pass over one sequence.
        config: of the model traced.
        block: index of the block.
        head: index of the query head.
        position: the query's position.

    Raises:
        KeyError: the trace has no such block.
        IndexError: it has no such head or position.
    """
    attn = f"blocks.{block}.attn"
    last = next(stage for stage in ("_rotated", "_normed", "") if f"{attn}.q{stage}" in trace)
    queries, keys = trace[f"{attn}.q{last}"], trace[f"{attn}.k{last}"]
    kv_head = head // (len(queries) // len(keys))
    q, k = queries[head, position].double(), keys[kv_head].double()
    v = trace[f"{attn}.v"][kv_head].double()
    products = k @ q
    scale = 1 / math.sqrt(config.d_head) if config.attention_scale is None else config.attention_scale
    scaled = products * scale
    if config.attention_softcap is not None:
        scaled = soft_cap(scaled, config.attention_softcap)
    bias = trace["position_bias"][head, position].double() if "position_bias" in trace else None
    scores = scaled if bias is None else scaled + bias
    hidden = trace[f"{attn}.masked_scores"][head, position].isneginf()
    weights = scores.masked_fill(hidden, -math.inf).softmax(-1)
    weighted = weights[:, None] * v
    z = weighted.sum(0)
    return QueryAttention(kv_head, q, k, products, scale, scaled, bias, scores, hidden, weights, v, weighted, z)
