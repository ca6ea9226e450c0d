"""The logit lens: what the model would say if it stopped after each step of the residual stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from lmcore.analysis.blocks.residual import residual_states
from lmcore.analysis.logits.normaliser import Normaliser
from lmcore.analysis.logits.scoring import ranks
from lmcore.model import Model
from lmcore.trace import Trace

_LOGITS_AT_ONCE = 2**24  # the head is read from memory once for as many states as this allows


@dataclass(frozen=True)
class LensLayer:
    """What one state of the residual stream says at S positions, read through the final norm and the head.

    Attributes:
        state: its name in the trace.
        top_ids: int64 [S], the most probable token.
        top_probs: float64 [S], its probability.
        target_probs: float64 [S], the followed token's probability.
        target_ranks: int64 [S], its rank, 1 for the most probable.
    """

    state: str
    top_ids: Tensor
    top_probs: Tensor
    target_probs: Tensor
    target_ranks: Tensor


def logit_lens(
    model: Model, trace: Trace, target_id: int, positions: slice = slice(None), within_blocks: bool = True
) -> Iterator[LensLayer]:
    """Put every state of the residual stream through the final norm and the head (nostalgebraist 2020).

    States come in order: what enters block 0, then after each attention and each MLP; the last one's distribution is
    the model's own. A few states at a time, so that a large vocabulary does not fill the memory.

    Args:
        model: the model traced.
        trace: of a pass over one sequence.
        target_id: the token to follow.
        positions: which to read; all of them when left out. Each costs as much as a whole pass of a small model.
        within_blocks: whether the states between attention and MLP are read too.

    Raises:
        ValueError: for a token outside the vocabulary.
    """
    if not 0 <= target_id < model.config.vocab_size:
        raise ValueError(f"target_id is {target_id}: ids run from 0 to {model.config.vocab_size - 1}.")
    names = [name for name in residual_states(trace) if within_blocks or not name.endswith("resid_mid")]
    n_logits = len(trace[names[0]][positions]) * model.config.vocab_size
    at_once = max(1, _LOGITS_AT_ONCE // max(n_logits, 1))
    for start in range(0, len(names), at_once):
        batch = names[start : start + at_once]
        with torch.inference_mode():
            states = torch.stack([trace[name][positions] for name in batch])
            states = states.to(model.head.weight.dtype)  # as the model had them, where the trace was widened since
            logits = model.unembed(model.final_norm(states))  # [state, position, vocab]
            best, rows = logits.argmax(-1, keepdim=True), logits.flatten(0, 1)
            pair = torch.cat([best, torch.full_like(best, target_id)], dim=-1)
            probs = Normaliser.of(rows).log_probs(rows.gather(-1, pair.flatten(0, 1))).exp().view(pair.shape)
            read = (best[..., 0], probs[..., 0], probs[..., 1], ranks(logits, pair[..., 1]))
        yield from map(LensLayer, batch, *read)
