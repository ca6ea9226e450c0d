"""The MLP of a block: widen, bend, narrow."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmcore.config import ModelConfig
from lmcore.linear import Linear
from lmcore.trace import SILENT, Recorder

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "gelu_sigmoid": lambda x: x * torch.sigmoid(1.702 * x),
    "relu": F.relu,
}


def gated_product(gate: Tensor, pre: Tensor, config: ModelConfig) -> Tensor:
    """Return activation(gate) * pre; gpt-oss holds both within a limit and adds 1 to pre.

    >>> config = ModelConfig(vocab_size=9, d_model=4, n_layers=1, n_heads=1, context_length=8, activation="relu",
    ...     mlp_limit=7.0, mlp_up_offset=1.0)
    >>> gated_product(torch.tensor([2.0, 9.0]), torch.tensor([3.0, -8.0]), config).tolist()
    [8.0, -42.0]
    """
    if config.mlp_limit is not None:
        gate, pre = gate.clamp(max=config.mlp_limit), pre.clamp(-config.mlp_limit, config.mlp_limit)
    return ACTIVATIONS[config.activation](gate) * (pre + config.mlp_up_offset)


class MLP(nn.Module):
    """down(activation(up(x))), or down(activation(gate(x)) * up(x)) when gated.

    Gated with SiLU it is SwiGLU, with GELU GeGLU: Shazeer 2020, "GLU Variants Improve
    Transformer", eq. 6. GELU: Hendrycks and Gimpel 2016, eq. 2 and section 2.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.activation = ACTIVATIONS[config.activation]
        self.gate = Linear(config.d_model, config.d_mlp, bias=config.mlp_bias) if config.gated_mlp else None
        self.up = Linear(config.d_model, config.d_mlp, bias=config.mlp_bias)
        self.down = Linear(config.d_mlp, config.d_model, bias=config.mlp_bias)

    def forward(self, x: Tensor, trace: Recorder = SILENT) -> Tensor:
        """Transform each position of x [..., S, d_model]; records `gate`, `pre`, `post` [..., S, d_mlp] and `out`."""
        if self.gate is None:
            pre = trace.record("pre", self.up(x), ("position", "d_mlp"))
            post = trace.record("post", self.activation(pre), ("position", "d_mlp"))
        else:
            gate = trace.record("gate", self.gate(x), ("position", "d_mlp"))
            pre = trace.record("pre", self.up(x), ("position", "d_mlp"))
            post = trace.record("post", gated_product(gate, pre, self.config), ("position", "d_mlp"))
        return trace.record("out", self.down(post), ("position", "d_model"))
