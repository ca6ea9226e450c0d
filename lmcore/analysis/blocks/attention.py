"""One query of one attention head, worked out step by step."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from lmcore.config import ModelConfig
from lmcore.scores import mask, pattern, scaled_scores
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
        visible: bool [S], False for the keys in the query's future and those a local block's window leaves out.
        sink: the score of the head's attention sink, which takes a share of the softmax; None without one.
        weights: [S], softmax of the scores over the visible keys, and the sink; 0 for the others.
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
    visible: Tensor
    sink: float | None
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
    kept = f"{attn}.k_kept" in trace
    queries, keys = trace[f"{attn}.q{last}"], trace[f"{attn}.k_kept" if kept else f"{attn}.k{last}"]
    kv_head = head // (len(queries) // len(keys))
    q, k = queries[head, position].double(), keys[kv_head].double()
    v = trace[f"{attn}.v_kept" if kept else f"{attn}.v"][kv_head].double()
    products = k @ q
    scaled = scaled_scores(products, config.score_scale, config.attention_softcap)
    bias = trace["position_bias"][head, position].double() if "position_bias" in trace else None
    scores = scaled_scores(products, config.score_scale, config.attention_softcap, bias)
    visible = trace[f"{attn}.visible"][position].bool()
    sinks = trace[f"{attn}.sinks"][head : head + 1].double() if f"{attn}.sinks" in trace else None
    weights = pattern(mask(scores, visible)[None, None], sinks)[0, 0]
    weighted = weights[:, None] * v
    return QueryAttention(
        kv_head,
        q,
        k,
        products,
        config.score_scale,
        scaled,
        bias,
        scores,
        visible,
        None if sinks is None else sinks.item(),
        weights,
        v,
        weighted,
        weighted.sum(0),
    )
