"""Normalisation: LayerNorm and RMSNorm, each with the factor it divides by on show."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from lmcore.config import ModelConfig
from lmcore.trace import SILENT, Recorder


class RMSNorm(nn.Module):
    """Divide by the root mean square over the last axis, then multiply by a learned gain.

    Zhang and Sennrich 2019, "Root Mean Square Layer Normalization", eq. 4. With `unit_offset` the
    gain is 1 + weight, as in Gemma.
    """

    root_eps: Tensor

    def __init__(self, size: int, eps: float, unit_offset: bool = False) -> None:
        super().__init__()
        self.unit_offset = unit_offset
        self.weight = nn.Parameter(torch.zeros(size) if unit_offset else torch.ones(size))
        self.register_buffer("root_eps", torch.tensor(eps).sqrt(), persistent=False)

    @property
    def gain(self) -> Tensor:
        """What the normalised vector is multiplied by, [size]."""
        return 1 + self.weight if self.unit_offset else self.weight

    def forward(self, x: Tensor, trace: Recorder = SILENT) -> Tensor:
        """Normalise x [..., d_model]; records `scale` [...], what x is divided by, and `out`."""
        wide = x.to(torch.promote_types(x.dtype, torch.float32))  # half precision would lose the sum of squares
        root_mean_square = torch.linalg.vector_norm(wide, dim=-1) / math.sqrt(x.shape[-1])
        scale = torch.hypot(root_mean_square, self.root_eps)  # sqrt(mean(x^2) + eps), in fewer and faster steps
        scale = trace.record("scale", scale, ("position",))
        out = self._divided(x, scale)  # a trace has x already, so that `out` need not be kept
        return trace.record("out", out, ("position", "d_model"), lambda of: self._divided(x, of("scale")))

    def _divided(self, x: Tensor, scale: Tensor) -> Tensor:
        return (x / scale.unsqueeze(-1)).to(x.dtype) * self.gain


class LayerNorm(nn.Module):
    """Subtract the mean over d_model, divide by the standard deviation, apply gain and bias.

    Ba, Kiros and Hinton 2016, "Layer Normalization", section 3.
    """

    def __init__(self, size: int, eps: float, bias: bool) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(size))
        self.bias = nn.Parameter(torch.zeros(size)) if bias else None

    @property
    def gain(self) -> Tensor:
        """What the normalised vector is multiplied by, [size]."""
        return self.weight

    def forward(self, x: Tensor, trace: Recorder = SILENT) -> Tensor:
        """Normalise x [..., d_model]; records `scale` [...], what x - mean is divided by, and `out`."""
        variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
        scale = trace.record("scale", variance.add_(self.eps).sqrt_().squeeze(-1), ("position",))
        out = self._divided(x - mean, scale)
        return trace.record("out", out, ("position", "d_model"), lambda of: self._divided(x - mean, of("scale")))

    def _divided(self, centred: Tensor, scale: Tensor) -> Tensor:
        out = centred / scale.unsqueeze(-1) * self.weight
        return out if self.bias is None else out + self.bias


def make_norm(config: ModelConfig) -> RMSNorm | LayerNorm:
    """Return the norm layer over d_model that the config asks for."""
    if config.norm == "rmsnorm":
        return RMSNorm(config.d_model, config.norm_eps, config.norm_unit_offset)
    return LayerNorm(config.d_model, config.norm_eps, config.norm_bias)
