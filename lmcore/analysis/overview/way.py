"""What one traced pass says of the way to one position's next token: all that the overview draws."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lmcore.analysis.logits.lens import logit_lens
from lmcore.model import Model
from lmcore.trace import Trace


@dataclass(frozen=True, eq=False)
class WholeWay:
    """The way from the tokens of a window to what the model says after one of them.

    Attributes:
        position: of the token whose way it is, the query.
        window: the W positions told one by one.
        embedding: float32 [W, d_model], their rows of the table.
        added: float32 [W, d_model], what the position encoding adds to them; None where it adds nothing.
        rotation: float32 [W, pair, 2], the cosine and sine RoPE turns each pair of a head by; None without RoPE.
        rotation_local: the same in blocks that see a sliding window only; None where they do not differ.
        bias: float32 [n_heads, W], what is added to the query's scores for these keys; None where nothing is.
        attention: float32 [n_layers, n_heads, W], the query's weights on the window.
        attention_before: float32 [n_layers, n_heads], its weights on all that stands before the window together.
        lens_ids: int64 [n_layers + 1], the token the model would say on entering block 0 and after each block.
        lens_probs: float64 [n_layers + 1], its probability.
        hidden_state: float32 [d_model], what the head reads.
    """

    position: int
    window: range
    embedding: Tensor
    added: Tensor | None
    rotation: Tensor | None
    rotation_local: Tensor | None
    bias: Tensor | None
    attention: Tensor
    attention_before: Tensor
    lens_ids: Tensor
    lens_probs: Tensor
    hidden_state: Tensor


def follow(model: Model, trace: Trace, position: int, window: range) -> WholeWay:
    """Read the way to one position's next token off a traced pass over one sequence.

    Args:
        model: the model traced.
        trace: of the pass.
        position: the query.
        window: the positions told one by one; it holds the query, and ends at it or later.

    Raises:
        ValueError: when the window is not within the sequence, or does not hold the position.
    """
    length = len(trace["hidden_state"])
    if window.step != 1 or not 0 <= window.start <= position < window.stop <= length:
        raise ValueError(
            f"window is {window.start} to {window.stop - 1}: it must lie within 0 to {length - 1} and hold "
            f"position {position}."
        )
    shown = slice(window.start, window.stop)
    patterns = [trace[f"blocks.{block}.attn.pattern"][:, position] for block in range(model.config.n_layers)]
    weights = torch.stack(patterns)  # [n_layers, n_heads, key]
    lens = list(logit_lens(model, trace, 0, slice(position, position + 1), within_blocks=False))
    return WholeWay(
        position=position,
        window=window,
        embedding=trace["token_embedding"][shown],
        added=trace["position_embedding"][shown] if "position_embedding" in trace else None,
        rotation=_rotation(model, length, shown, local=False),
        rotation_local=_rotation(model, length, shown, local=True)
        if model.config.rope_base_local is not None
        else None,
        bias=trace["position_bias"][:, position, shown] if "position_bias" in trace else None,
        attention=weights[..., shown],
        attention_before=weights[..., : window.start].sum(-1),
        lens_ids=torch.cat([layer.top_ids for layer in lens]),
        lens_probs=torch.cat([layer.top_probs for layer in lens]),
        hidden_state=trace["hidden_state"][position],
    )


def _rotation(model: Model, length: int, shown: slice, local: bool) -> Tensor | None:
    found = model.position.rotation(0, length, local)
    if found is None:
        return None
    pairs = found.cos.shape[-1] // 2
    second = slice(pairs, None) if found.layout == "half_split" else slice(1, None, 2)
    return torch.stack([found.cos[shown, second], found.signed_sin[shown, second]], -1)
