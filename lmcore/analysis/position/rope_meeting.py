"""A query and a key of one head as they meet under RoPE: before and after they are turned, and wherever else."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from lmcore.analysis.position.measures import block_frequencies, rope_scores_by_difference
from lmcore.config import ModelConfig, RopeLayout
from lmcore.position import make_rotation
from lmcore.scores import scaled_scores, soft_cap
from lmcore.trace import Trace


@dataclass(frozen=True)
class RopeMeeting:
    """One query and one key of a head; the vectors are [n_rotated], the components that RoPE turns.

    Attributes:
        q, k: before RoPE; after the norm, in models that norm queries and keys.
        v: the key's value, which RoPE leaves alone.
        q_turned, k_turned: after RoPE, as the model turned them.
        query, key: their positions.
        frequencies: rotation per position of each pair in this block, [n_rotated / 2].
        layout: which components form a pair.
        scale: what the model multiplies q·k by, YaRN's and LongRoPE's sharpening included.
        score: the model's own score.
        unturned: what the components that RoPE leaves alone add to the score, at any positions.
        softcap: the model's cap of scores, or None.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    q_turned: Tensor
    k_turned: Tensor
    query: int
    key: int
    frequencies: Tensor
    layout: RopeLayout
    scale: float
    score: float
    unturned: float = 0.0
    softcap: float | None = None

    def score_of(self, turned: Tensor) -> Tensor:
        """Return the score that follows from what all turned pairs add together."""
        scores = turned + self.unturned  # 0 where RoPE turns all components
        return scores if self.softcap is None else soft_cap(scores, self.softcap)

    def by_difference(
        self, differences: Tensor, layout: RopeLayout | None = None, frequencies: Tensor | None = None
    ) -> Tensor:
        """Return what each pair adds to the score at each difference of positions [n], float64 [n, n_rotated / 2].

        The layout and the frequencies are the model's own unless others are given.
        """
        turning = self.frequencies if frequencies is None else frequencies
        return rope_scores_by_difference(self.q, self.k, differences, turning, layout or self.layout, self.scale)

    def at(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Return the score with q at each of these positions [n] and k at each of those [m], float32 [n, m]."""
        turned_q = make_rotation(queries, self.frequencies, self.layout)(self.q.float().expand(len(queries), -1))
        turned_k = make_rotation(keys, self.frequencies, self.layout)(self.k.float().expand(len(keys), -1))
        return self.score_of(scaled_scores(turned_q @ turned_k.T, self.scale))


def rope_meeting(trace: Trace, config: ModelConfig, block: int, head: int, query: int, key: int) -> RopeMeeting:
    """Read a query and a key of one head from a trace.

    Args:
        trace: of a pass over one sequence, through a model with RoPE.
        config: that model's.
        block, head, query, key: indices from 0.

    Raises:
        ValueError: when RoPE does not turn this block.
        KeyError: the trace has no such block, or its model no RoPE.
        IndexError: it has no such head or position.
    """
    if block in config.unrotated_layers:
        raise ValueError(f"RoPE does not turn queries and keys in block {block} of this model; choose another block.")
    attn = f"blocks.{block}.attn"
    kv_head = head * config.n_kv_heads // config.n_heads
    turned = config.n_rotated
    queries, keys = (trace.get(f"{attn}.{name}_normed", trace[f"{attn}.{name}"]) for name in "qk")
    q, k = queries[head, query], keys[kv_head, key]
    sharper = 1.0 if config.rope_scaling is None else config.rope_scaling.attention_factor
    if block in config.local_layers and config.rope_base_local is not None:
        sharper = 1.0
    return RopeMeeting(
        q=q[:turned],
        k=k[:turned],
        v=trace[f"{attn}.v"][kv_head, key][:turned],
        q_turned=trace[f"{attn}.q_rotated"][head, query][:turned],
        k_turned=trace[f"{attn}.k_rotated"][kv_head, key][:turned],
        query=query,
        key=key,
        frequencies=block_frequencies(config, block, len(trace["hidden_state"])),
        layout=config.rope_layout,
        scale=config.score_scale * sharper**2,
        score=trace[f"{attn}.scores"][head, query, key].item(),
        unturned=config.score_scale * (q[turned:].double() @ k[turned:].double()).item(),
        softcap=config.attention_softcap,
    )


def uneven_diagonals(scores: Tensor) -> float:
    """Return the most that a square of scores [n, n] varies along any of its diagonals.

    >>> import torch
    >>> uneven_diagonals(torch.tensor([[1.0, 5.0], [2.0, 1.5]]))
    0.5
    """
    n = len(scores)
    diagonals = [scores.diagonal(offset) for offset in range(1 - n, n)]
    return max((diagonal.max() - diagonal.min()).item() for diagonal in diagonals)
