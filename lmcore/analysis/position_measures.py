"""What position encodings do, as numbers: similarity by distance, RoPE's score by difference, order felt or not."""

from __future__ import annotations

import math
from collections.abc import Mapping

from torch import Tensor

from lmcore.config import RopeLayout
from lmcore.position import make_rotation, rope_frequencies


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
    q: Tensor, k: Tensor, differences: Tensor, frequencies: Tensor, layout: RopeLayout = "half_split"
) -> Tensor:
    """Return the score that q and k would have at each difference of positions, by pair.

    Pair i adds (q_i · k_i rotated by -difference * theta_i) / sqrt(d_head), where theta_i is its frequency.
    Su et al. 2021, "RoFormer", equation 16.

    Args:
        q, k: one query and one key before rotation, [d_head].
        differences: query position minus key position, [n].
        frequencies: theta of each pair, radians per position, [d_head / 2].
        layout: which components form a pair.

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
    return pairs / math.sqrt(q.shape[-1])


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
    hidden = trace[f"blocks.{block}.attn.masked_scores"].isneginf()
    return scores, scores.masked_fill(hidden, -math.inf).softmax(-1)
