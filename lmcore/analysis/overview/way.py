"""What a traced pass says of the way to one position's next token: all that the overview draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

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
        candidate_probs: float64 [n_layers + 1], a candidate's probability at these places; None where none is followed.
        candidate_ranks: int64 [n_layers + 1], its rank, 1 for the most probable; None where none is followed.
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
    candidate_probs: Tensor | None
    candidate_ranks: Tensor | None
    hidden_state: Tensor


@torch.inference_mode()
def follow(
    model: Model, ids: Sequence[int], trace: Trace, position: int, window: range, candidate: int | None = None
) -> WholeWay:
    """Read the way to one position's next token off a traced pass.

    The pass may have gone over the beginning of the text only, and may have continued a KV cache: what comes after a
    position changes nothing at it.

    Args:
        model: the model traced.
        ids: the text, one sequence.
        trace: of a pass over it that reached the position.
        position: the query.
        window: the positions told one by one; it holds the query, and ends at it or later.
        candidate: a token that may come next, to be followed through the blocks.

    Raises:
        ValueError: when the window is not within the sequence, or does not hold the position, when the pass did not
            reach it, or for a candidate outside the vocabulary.
    """
    length = len(ids)
    if window.step != 1 or not 0 <= window.start <= position < window.stop <= length:
        raise ValueError(
            f"window is {window.start} to {window.stop - 1}: it must lie within 0 to {length - 1} and hold "
            f"position {position}."
        )
    shown = slice(window.start, window.stop)
    n_traced, n_keys = trace["blocks.0.attn.pattern"].shape[-2:]
    query = position - (n_keys - n_traced)
    if not 0 <= query < n_traced:
        raise ValueError(f"the pass reached positions {n_keys - n_traced} to {n_keys - 1}, and not {position}.")
    patterns = [trace[f"blocks.{block}.attn.pattern"][:, query] for block in range(model.config.n_layers)]
    weights = torch.stack(patterns)  # [n_layers, n_heads, key]
    weights = nn.functional.pad(weights, (0, max(window.stop - n_keys, 0)))  # no query sees what comes later
    lens = list(logit_lens(model, trace, candidate or 0, slice(query, query + 1), within_blocks=False))
    added, bias = model.position.added(0, length), model.position.score_bias(position, length - position)
    return WholeWay(
        position=position,
        window=window,
        embedding=model.token_embedding(torch.tensor([int(token) for token in ids[shown]])).float(),
        added=None if added is None else added[shown].detach().float(),
        rotation=_rotation(model, length, shown, local=False),
        rotation_local=_rotation(model, length, shown, local=True)
        if model.config.rope_base_local is not None
        else None,
        bias=None if bias is None else bias[:, 0, shown].float(),
        attention=weights[..., shown],
        attention_before=weights[..., : window.start].sum(-1),
        lens_ids=torch.cat([layer.top_ids for layer in lens]),
        lens_probs=torch.cat([layer.top_probs for layer in lens]),
        candidate_probs=None if candidate is None else torch.cat([layer.target_probs for layer in lens]),
        candidate_ranks=None if candidate is None else torch.cat([layer.target_ranks for layer in lens]),
        hidden_state=trace["hidden_state"][query],
    )


def _rotation(model: Model, length: int, shown: slice, local: bool) -> Tensor | None:
    found = model.position.rotation(0, length, local)
    if found is None:
        return None
    pairs = found.cos.shape[-1] // 2
    second = slice(pairs, None) if found.layout == "half_split" else slice(1, None, 2)
    return torch.stack([found.cos[shown, second], found.signed_sin[shown, second]], -1)
