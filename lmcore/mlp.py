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
        pre = self.up(x)
        if self.gate is None:
            post = self.activation(pre)
        else:
            gate = self.gate(x)
            trace.record("gate", gate, ("position", "d_mlp"))
            post = self.activation(gate) * pre
        trace.record("pre", pre, ("position", "d_mlp"))
        trace.record("post", post, ("position", "d_mlp"))
        out = self.down(post)
        trace.record("out", out, ("position", "d_model"))
        return out
