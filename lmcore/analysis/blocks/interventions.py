"""Interventions: run a model once with components switched off or tokens swapped, and measure what changes.

An intervention is a short text, in the words of traces and attributions:

    blocks.2.attn.head.3    one head of block 2 writes nothing
    blocks.2.attn           the attention of block 2 adds nothing to the residual stream
    blocks.2.mlp            its MLP adds nothing
    blocks.2.mlp.expert.3   the router of block 2 chooses among the other experts
    blocks.2                neither of them does: the stream passes the block unchanged
    swap.0.3                the tokens at positions 0 and 3 change places, where their vectors enter the model
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from lmcore.config import ModelConfig
from lmcore.distribution import softmax, total_variation
from lmcore.language_model import LanguageModel
from lmcore.trace import Edit, Recorder

_PATTERN = re.compile(
    r"blocks\.(\d{1,5})(?:\.(attn|mlp)|\.attn\.head\.(\d{1,5})|\.mlp\.expert\.(\d{1,5}))?|swap\.(\d{1,6})\.(\d{1,6})"
)
_MAX_BATCH_TOKENS, _MAX_BATCH_ROWS = 256, 16  # so that a batch is soon over and its logits stay small


def attn_contribution(config: ModelConfig, block: int) -> str:
    """Return the name of what a block's attention adds to the residual stream: with sandwich norms, the normed out."""
    return f"blocks.{block}.{config.attn_added}"


def mlp_contribution(config: ModelConfig, block: int) -> str:
    """Return the name of what a block's MLP adds to the residual stream: with sandwich norms, the normed out."""
    return f"blocks.{block}.{config.mlp_added}"


def check_intervention(text: str, config: ModelConfig, length: int) -> None:
    """Check that an intervention exists in a model, for a text of some length.

    Raises:
        ValueError: saying what of it does not exist.
    """
    found = _PATTERN.fullmatch(text)
    if found is None:
        raise ValueError(
            f"{text!r} is no intervention; write blocks.2.attn.head.3, blocks.2.attn, blocks.2.mlp, "
            "blocks.2.mlp.expert.3, blocks.2 or swap.0.3."
        )
    block, _part, head, expert, first, second = found.groups()
    for name, number, end in (
        ("block", block, config.n_layers),
        ("head", head, config.n_heads),
        ("expert", expert, config.n_experts or 0),
        ("position", first, length),
        ("position", second, length),
    ):
        if number is not None and int(number) >= end:
            there = f"they run from 0 to {end - 1}" if end else "this model has none"
            raise ValueError(f"{text!r}: {name} {int(number)} does not exist; {there}.")


def edits_of(interventions: Iterable[str], config: ModelConfig, length: int) -> dict[str, Edit]:
    """Return the edits of a forward pass that carry out some interventions together.

    A head is switched off where it has read: its z is 0, so that attn.out keeps the other heads and the bias. With
    sandwich norms, as in Gemma, what they write is then normed anew. An attention or an MLP is switched off where it
    is added to the stream, with its biases.

    Args:
        interventions: in any order; swaps follow one another in the order given.
        config: of the model.
        length: tokens of the text.

    Raises:
        ValueError: for an intervention that does not exist in this model or text, or too few experts left.

    >>> config = ModelConfig(vocab_size=11, d_model=8, n_layers=2, n_heads=2, context_length=16)
    >>> list(edits_of(["blocks.1.attn.head.0", "blocks.0", "swap.0.2"], config, 3))
    ['blocks.1.attn.z', 'blocks.0.attn.out', 'blocks.0.mlp.out', 'token_embedding']
    """
    heads: dict[str, list[int]] = {}
    experts: dict[str, list[int]] = {}
    edits: dict[str, Edit] = {}
    order = list(range(length))
    for text in interventions:
        check_intervention(text, config, length)
        kind, *rest = text.split(".")
        if kind == "swap":
            first, second = map(int, rest)
            order[first], order[second] = order[second], order[first]
            edits["token_embedding"] = _rows_in_order(order)
            continue
        block, part = int(rest[0]), rest[1:]
        if part[:2] == ["mlp", "expert"]:
            logits = f"blocks.{block}.mlp.router_logits"
            experts.setdefault(logits, []).append(int(part[2]))
            left = (config.n_experts or 0) - len(set(experts[logits]))
            if left < (config.n_experts_used or 0):
                raise ValueError(f"block {block} needs {config.n_experts_used} experts; {left} would be left.")
            edits[logits] = _without_experts(experts[logits])
        if part[:2] == ["attn", "head"]:
            z = f"blocks.{block}.attn.z"
            heads.setdefault(z, []).append(int(part[2]))
            edits[z] = _without_heads(heads[z])
        if part in ([], ["attn"]):
            edits[attn_contribution(config, block)] = torch.zeros_like
        if part in ([], ["mlp"]):
            edits[mlp_contribution(config, block)] = torch.zeros_like
    return edits


def next_probs(lm: LanguageModel, ids: Sequence[int], position: int, interventions: Iterable[str] = ()) -> Tensor:
    """Return the distribution of the token after a position, float64 [V], with interventions carried out together.

    Raises:
        ValueError: for ids the model refuses, or an intervention that does not exist.
    """
    edits = edits_of(interventions, lm.config, len(ids))
    return _next_probs(lm, torch.as_tensor(ids, dtype=torch.long), position, [edits])[0]


def each_component(config: ModelConfig) -> tuple[str, ...]:
    """Return the interventions that switch off one head, one attention or one MLP, block by block.

    >>> each_component(ModelConfig(vocab_size=11, d_model=8, n_layers=1, n_heads=2, context_length=16))
    ('blocks.0.attn.head.0', 'blocks.0.attn.head.1', 'blocks.0.attn', 'blocks.0.mlp')
    """
    parts = [*(f"attn.head.{head}" for head in range(config.n_heads)), "attn", "mlp"]
    return tuple(f"blocks.{block}.{part}" for block in range(config.n_layers) for part in parts)


def effects_alone(
    lm: LanguageModel, ids: Sequence[int], position: int, interventions: Sequence[str]
) -> Iterator[tuple[str, float]]:
    """Carry out each intervention by itself and yield how far it moves the next-token distribution.

    Several run as one batch; a short text has many in it, a long one few.

    Args:
        lm: the language model.
        ids: the text; tokens after `position` cannot matter and are left away.
        position: whose next-token distribution is compared.
        interventions: in the order in which they are yielded.

    Yields:
        The intervention, and the total variation distance to the intact distribution, 0..1.

    Raises:
        ValueError: for no such position, ids the model refuses, or an intervention that does not exist.
    """
    if not 0 <= position < len(ids):
        raise ValueError(f"position is {position}: the text has positions 0 to {len(ids) - 1}.")
    text = torch.as_tensor(ids[: position + 1], dtype=torch.long)
    intact = next_probs(lm, text.tolist(), position)
    at_once = min(max(_MAX_BATCH_TOKENS // len(text), 1), _MAX_BATCH_ROWS)
    for start in range(0, len(interventions), at_once):
        batch = interventions[start : start + at_once]
        rows = [edits_of([intervention], lm.config, len(text)) for intervention in batch]
        for intervention, probs in zip(batch, _next_probs(lm, text, position, rows), strict=True):
            yield intervention, total_variation(probs, intact).item()


def _next_probs(lm: LanguageModel, text: Tensor, position: int, rows: Sequence[dict[str, Edit]]) -> list[Tensor]:
    """Return the distribution after a position [V] for each row of edits; no other position's is computed."""
    with torch.inference_mode():
        record = Recorder(None, edits=_row_by_row(rows))
        hidden = lm.model.hidden_state(text.expand(len(rows), -1), record=record)[:, position]
        record.check_edits_met()
        return [softmax(logits) for logits in lm.model.unembed(hidden)]


def _row_by_row(rows: Sequence[dict[str, Edit]]) -> dict[str, Edit]:
    """Return the edits of a batch that make the first row's edits in the first sequence, and so on."""

    def edit_of(name: str) -> Edit:
        return lambda batch: torch.stack(
            [edits[name](row) if name in edits else row for edits, row in zip(rows, batch, strict=True)]
        )

    return {name: edit_of(name) for name in dict.fromkeys(name for edits in rows for name in edits)}


def _rows_in_order(order: Sequence[int]) -> Edit:
    taken = list(order)
    return lambda vectors: vectors[..., taken, :]


def _without_experts(experts: Sequence[int]) -> Edit:
    off = list(experts)

    def edit(router_logits: Tensor) -> Tensor:
        router_logits = router_logits.clone()
        router_logits[..., off] = -torch.inf
        return router_logits

    return edit


def _without_heads(heads: Sequence[int]) -> Edit:
    off = list(heads)

    def edit(z: Tensor) -> Tensor:
        z = z.clone()
        z[..., off, :, :] = 0
        return z

    return edit
