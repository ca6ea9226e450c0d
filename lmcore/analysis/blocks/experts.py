"""A mixture of experts at work: which token goes where, how busy each expert is, and what an expert writes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lmcore.analysis.logits.attribution import as_added, read_by_head
from lmcore.config import ModelConfig
from lmcore.model import Model
from lmcore.trace import Edit, Trace


def routing(trace: Trace, config: ModelConfig, block: int) -> Tensor:
    """Return the weight of every expert for every token in a block, [n_experts, S]; 0 where it was not chosen.

    Args:
        trace: of a pass over one sequence.
        config: of the model traced, which has experts.
        block: index of the block.
    """
    chosen, weights = trace[f"blocks.{block}.mlp.chosen"].long(), trace[f"blocks.{block}.mlp.weights"]
    table = torch.zeros(len(chosen), config.n_experts or 0, dtype=weights.dtype)
    return table.scatter(1, chosen, weights).T


def expert_loads(trace: Trace, config: ModelConfig) -> Tensor:
    """Return the share of a text's choices that fell on each expert, float64 [n_layers, n_experts]; each row sums to 1.

    With all experts equally busy each share is 1 / n_experts.
    """
    chosen = [trace[f"blocks.{block}.mlp.chosen"].long().flatten() for block in range(config.n_layers)]
    counts = torch.stack([torch.bincount(each, minlength=config.n_experts or 0) for each in chosen]).double()
    return counts / counts.sum(1, keepdim=True)


def given_to_experts(model: Model, texts: Tensor) -> Tensor:
    """Return how often each token of some texts went to each expert, int64 [n_layers, n_experts, V].

    Args:
        model: has experts. The counts of a large one fill the memory: 7 GB for 128 experts in 48 layers.
        texts: ids [text, position].

    Raises:
        ValueError: a model without experts.
    """
    config, trace = model.config, Trace()
    if config.n_experts is None:
        raise ValueError("the model has no experts: every token goes through the same MLP.")
    with torch.inference_mode():
        model(texts, trace=trace)
    counts = torch.zeros(config.n_layers, config.n_experts, config.vocab_size, dtype=torch.int64)
    for block, of_block in enumerate(counts):
        chosen = trace[f"blocks.{block}.mlp.chosen"].long()  # [text, position, choice]
        places = (chosen * config.vocab_size + texts.unsqueeze(-1)).flatten()
        of_block.view(-1).add_(torch.bincount(places, minlength=of_block.numel()))
    return counts


@dataclass(frozen=True)
class ExpertAt:
    """One chosen expert at one position.

    Attributes:
        expert: its number.
        weight: what its output was multiplied by.
        logit: the router's logit of it.
        contributions: what its output adds to each logit, directly, float64 [V]; through the norms with their scales
            held as they were, see `attribute`.
    """

    expert: int
    weight: float
    logit: float
    contributions: Tensor


def experts_at(model: Model, trace: Trace, block: int, position: int) -> list[ExpertAt]:
    """Return the experts that a position's token goes to in a block, the router's first choice first.

    Args:
        model: the model traced.
        trace: of a pass over one sequence.
        block: index of the block.
        position: the token's position.
    """
    mlp = f"blocks.{block}.mlp"
    chosen, weights = trace[f"{mlp}.chosen"][position].long(), trace[f"{mlp}.weights"][position]
    logits, outs = trace[f"{mlp}.router_logits"][position], trace[f"{mlp}.expert_out"][position]
    with torch.inference_mode():
        written = as_added(model, trace, f"blocks.{block}.mlp", position, weights[:, None].double() * outs.double())
        contributions = read_by_head(model, trace, position, written)
    return [
        ExpertAt(expert, weight, logits[expert].item(), each)
        for expert, weight, each in zip(chosen.tolist(), weights.tolist(), contributions, strict=True)
    ]


def replacing(expert: int, other: int) -> Edit:
    """Return an edit of `mlp.chosen` that sends the tokens of one expert to another one.

    Tokens that go to the other one anyway keep both.

    >>> replacing(1, 2)(torch.tensor([[0, 1], [1, 2]])).tolist()
    [[0, 2], [1, 2]]
    """

    def edit(chosen: Tensor) -> Tensor:
        free = (chosen == expert) & ~(chosen == other).any(-1, keepdim=True)
        return torch.where(free, other, chosen)

    return edit
