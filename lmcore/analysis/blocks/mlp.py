"""The MLP's units that a token activates most."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from lmcore.config import ModelConfig
from lmcore.distribution import top
from lmcore.mlp import ACTIVATIONS
from lmcore.trace import Trace


@dataclass(frozen=True)
class ActiveUnits:
    """The n units of largest |post| at one position, the largest first.

    Attributes:
        units: int64 [n], indices into d_mlp.
        gate: [n], before the activation; None when the MLP is not gated.
        activated: [n], activation(gate), or activation(pre) when not gated.
        pre: [n], up(x).
        post: [n], what enters the down matrix: activation(gate) * pre, or activation(pre); gpt-oss's way of
            multiplying is `lmcore.mlp.gated_product`.
        share: their part of the sum of post squared over all d_mlp units, 0..1.
    """

    units: Tensor
    gate: Tensor | None
    activated: Tensor
    pre: Tensor
    post: Tensor
    share: float


def most_active_units(
    trace: Trace, config: ModelConfig, block: int, position: int, n: int = 20, choice: int = 0
) -> ActiveUnits:
    """Return the n most active units of a block's MLP at one position, in float64.

    Args:
        trace: of a pass over one sequence.
        config: of the model traced.
        block: index of the block.
        position: the token's position.
        n: how many; more than d_mlp gives all.
        choice: in a model with experts, whose units: 0 is the token's first expert.
    """
    mlp = f"blocks.{block}.mlp"
    place = (position,) if config.n_experts is None else (position, choice)
    pre, post = (trace[f"{mlp}.{name}"][place].double() for name in ("pre", "post"))
    gate = trace[f"{mlp}.gate"][place].double() if config.gated_mlp else None
    units = top(post.abs(), n).ids
    bent = pre if gate is None else gate
    if config.mlp_limit is not None:
        bent = bent.clamp(max=config.mlp_limit)
    total = post.square().sum().item()
    return ActiveUnits(
        units,
        None if gate is None else gate[units],
        ACTIVATIONS[config.activation](bent[units]),
        pre[units],
        post[units],
        post[units].square().sum().item() / total if total else 0.0,
    )
