"""Normalisation: LayerNorm and RMSNorm, each with the factor it divides by on show."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lmcore.config import ModelConfig
from lmcore.trace import SILENT, Recorder


class RMSNorm(nn.Module):
    """Divide by the root mean square over the last axis, then multiply by a learned gain.

    Zhang and Sennrich 2019, "Root Mean Square Layer Normalization", eq. 4. With `unit_offset` the
    gain is 1 + weight, as in Gemma.
    """

    def __init__(self, size: int, eps: float, unit_offset: bool = False) -> None:
        super().__init__()
        self.eps, self.unit_offset = eps, unit_offset
        self.weight = nn.Parameter(torch.zeros(size) if unit_offset else torch.ones(size))

    @property
    def gain(self) -> Tensor:
        """What the normalised vector is multiplied by, [size]."""
        return 1 + self.weight if self.unit_offset else self.weight

    def forward(self, x: Tensor, trace: Recorder = SILENT) -> Tensor:
        """Normalise x [..., d_model]; records `scale` [...], what x is divided by, and `out`."""
        wide = x.to(torch.promote_types(x.dtype, torch.float32))  # half precision would lose the sum of squares
        scale = trace.record("scale", (wide.square().mean(-1) + self.eps).sqrt(), ("position",))
        out = (wide / scale.unsqueeze(-1)).to(x.dtype) * self.gain
        return trace.record("out", out, ("position", "d_model"))


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
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        centred = wide - wide.mean(-1, keepdim=True)
        scale = trace.record("scale", (centred.square().mean(-1) + self.eps).sqrt(), ("position",))
        out = (centred / scale.unsqueeze(-1)).to(x.dtype) * self.weight
        return trace.record("out", out if self.bias is None else out + self.bias, ("position", "d_model"))


class AllHeadsNorm(RMSNorm):
    """RMSNorm over all heads at once (OLMo 2): it normalises [..., n_heads, S, d_head] over heads and components."""

    def forward(self, x: Tensor, trace: Recorder = SILENT) -> Tensor:
        """Normalise x [..., n_heads, S, d_head]; records `scale` [..., S] and `out` [..., S, n_heads * d_head]."""
        joined = x.transpose(-3, -2).flatten(-2)
        return super().forward(joined, trace).unflatten(-1, (x.shape[-3], x.shape[-1])).transpose(-3, -2)


def make_head_norm(config: ModelConfig, n_heads: int) -> RMSNorm:
    """Return the norm of queries or keys that the config asks for: of each head by itself, or of all together."""
    if config.qk_norm_over == "all_heads":
        return AllHeadsNorm(n_heads * config.d_head, config.norm_eps, config.norm_unit_offset)
    return RMSNorm(config.d_head, config.norm_eps, config.norm_unit_offset)


def make_norm(config: ModelConfig) -> RMSNorm | LayerNorm:
    """Return the norm layer over d_model that the config asks for."""
    if config.norm == "rmsnorm":
        return RMSNorm(config.d_model, config.norm_eps, config.norm_unit_offset)
    return LayerNorm(config.d_model, config.norm_eps, config.norm_bias)
