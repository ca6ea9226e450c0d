"""The MLP of a block: widen, bend, narrow."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F

from lmcore.config import ModelConfig
from lmcore.linear import Linear
from lmcore.trace import SILENT, Recorder

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "relu": F.relu,
}


class MLP(nn.Module):
    """down(activation(up(x))), or down(activation(gate(x)) * up(x)) when gated.

    Gated with SiLU it is SwiGLU, with GELU GeGLU: Shazeer 2020, "GLU Variants Improve
    Transformer", eq. 6. GELU: Hendrycks and Gimpel 2016, eq. 2.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
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
            post = trace.record("post", self.activation(gate) * pre, ("position", "d_mlp"))
        return trace.record("out", self.down(post), ("position", "d_model"))
