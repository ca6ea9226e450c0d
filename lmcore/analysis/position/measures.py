"""What position encodings do, as numbers: similarity by distance, RoPE's score by difference, order felt or not."""

from __future__ import annotations

import math
from collections.abc import Mapping

from torch import Tensor

from lmcore.config import ModelConfig, RopeLayout
from lmcore.position import make_rotation, rope_frequencies
from lmcore.scores import mask, pattern


def wavelengths(d: int, base: float = 10_000.0) -> Tensor:
    """Return after how many tokens each pair of dimensions is back where it was, float64 [ceil(d / 2)].

    2 pi base^(2i / d), the same for the sinusoidal table (d = d_model) and for RoPE (d = d_head).

    >>> [round(v, 2) for v in wavelengths(4).tolist()]
    [6.28, 628.32]
    """
    return 2 * math.pi / rope_frequencies(d, base)


def similarity(table: Tensor, cosine: bool = False) -> Tensor:
    """Return the dot product, or the cosine, of every two rows of a position table [n, d], as [n, n].

    >>> import torch
    >>> similarity(torch.tensor([[3.0, 0.0], [0.0, 2.0]])).tolist()
    [[9.0, 0.0], [0.0, 4.0]]
    """
    rows = table / table.norm(dim=-1, keepdim=True) if cosine else table
    return rows @ rows.T


def rope_scores_by_difference(
    q: Tensor,
    k: Tensor,
    differences: Tensor,
    frequencies: Tensor,
    layout: RopeLayout = "half_split",
    scale: float | None = None,
) -> Tensor:
    """Return the score that q and k would have at each difference of positions, by pair.

    Pair i adds (q_i · k_i rotated by -difference * theta_i) * scale, where theta_i is its frequency.
    Su et al. 2021, "RoFormer", equation 16.

    Args:
        q, k: one query and one key before rotation, [d_head].
        differences: query position minus key position, [n].
        frequencies: theta of each pair, radians per position, [d_head / 2].
        layout: which components form a pair.
        scale: what the model multiplies its scores by; 1 / sqrt(d_head) by default.

    Returns:
        [n, d_head / 2], float64; the sum over the pairs is the score.
    """
    q, k = q.double(), k.double()
    turned = make_rotation(-differences, frequencies, layout)(k.expand(len(differences), -1))
    products = q * turned.double()
    if layout == "half_split":
        pairs = products.unflatten(-1, (2, -1)).sum(-2)
    else:
        pairs = products.unflatten(-1, (-1, 2)).sum(-1)
    return pairs * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)


def block_frequencies(config: ModelConfig, block: int, length: int = 0) -> Tensor:
    """Return the rotation per position of each pair in a block, float64 [n_rotated / 2].

    Local blocks may have their own; under LongRoPE they depend on the text's length in tokens.

    >>> config = ModelConfig(vocab_size=9, d_model=4, n_layers=2, n_heads=1, context_length=8, rope_base=100.0,
    ...     rope_base_local=10_000.0, sliding_window=4, local_layers=(0,))
    >>> block_frequencies(config, 0).tolist(), block_frequencies(config, 1).tolist()
    ([1.0, 0.01], [1.0, 0.1])
    """
    if block in config.local_layers and config.rope_base_local is not None:
        return rope_frequencies(config.n_rotated, config.rope_base_local)
    scaling = config.rope_scaling
    long = scaling is not None and length > scaling.original_context_length
    return rope_frequencies(config.n_rotated, config.rope_base, scaling, long)


def rope_decay(differences: Tensor, frequencies: Tensor) -> Tensor:
    """Return the score of two equal vectors at each difference of positions, as a share of that at difference 0.

    It is the mean of cos(difference * theta_i) when every pair of the vector has the same length; Su et al. 2021,
    section 3.4.3, bound it as it falls with the difference.

    >>> import torch
    >>> [round(share, 6) for share in rope_decay(torch.tensor([0, 1]), torch.tensor([0.0, math.pi])).tolist()]
    [1.0, 0.0]
    """
    return (differences.double()[..., None] * frequencies).cos().mean(-1)


def pairs_of(x: Tensor, layout: RopeLayout) -> Tensor:
    """Return the pairs that RoPE rotates, [..., d_head / 2, 2].

    >>> import torch
    >>> x = torch.tensor([1, 2, 3, 4])
    >>> pairs_of(x, "half_split").tolist(), pairs_of(x, "interleaved").tolist()
    ([[1, 3], [2, 4]], [[1, 2], [3, 4]])
    """
    if layout == "half_split":
        return x.unflatten(-1, (2, -1)).transpose(-1, -2)
    return x.unflatten(-1, (-1, 2))


def last_position_differences(first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> dict[str, float]:
    """Return how far two traces are apart at their last position, stage by stage.

    Args:
        first, second: traces of two texts of equally many tokens, run through the same model.

    Returns:
        name -> |a - b| / mean(|a|, |b|) of the last position's vector, for what enters block 0,
        every block's attn.out and resid_post, and hidden_state; 0 where the two are equal.

    Raises:
        ValueError: when the texts differ in length.
    """
    n_first, n_second = (len(trace["token_embedding"]) for trace in (first, second))
    if n_first != n_second:
        raise ValueError(f"the texts have {n_first} and {n_second} tokens; compare texts of the same length.")
    names = ["blocks.0.resid_pre"]
    n_blocks = sum(name.endswith(".resid_post") for name in first)
    for block in range(n_blocks):
        names += [f"blocks.{block}.attn.out", f"blocks.{block}.resid_post"]
    names.append("hidden_state")
    return {name: _relative_difference(first[name][-1].double(), second[name][-1].double()) for name in names}


def _relative_difference(a: Tensor, b: Tensor) -> float:
    size = (a.norm() + b.norm()).item() / 2
    return (a - b).norm().item() / size if size else 0.0


def without_score_bias(trace: Mapping[str, Tensor], block: int) -> tuple[Tensor, Tensor]:
    """Return the scores of a block before the position bias was added, and the pattern they alone would give.

    Returns:
        scores [head, query, key], not masked; pattern [head, query, key], causal, rows sum to 1.
    """
    scores = trace[f"blocks.{block}.attn.scores"] - trace["position_bias"]
    return scores, pattern(mask(scores, trace[f"blocks.{block}.attn.visible"].bool()))
