"""A mixture of experts: several MLPs side by side, of which each token goes through a few."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmcore.config import ModelConfig
from lmcore.linear import Linear
from lmcore.mlp import gated_product
from lmcore.trace import SILENT, Recorder


class ExpertLinear(nn.Module):
    """One matrix for each expert, [n_experts, out_features, in_features]."""

    def __init__(self, n_experts: int, in_features: int, out_features: int, bias: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_experts, out_features, in_features))
        self.bias = nn.Parameter(torch.zeros(n_experts, out_features)) if bias else None

    def forward(self, x: Tensor, chosen: Tensor) -> Tensor:
        """Multiply each vector with the matrix of its expert.

        Args:
            x: [..., choice, in_features].
            chosen: the expert of each vector, int64 [..., choice].

        Returns:
            [..., choice, out_features].
        """
        y = x.new_empty(*chosen.shape, self.weight.shape[1])
        for expert in chosen.unique().tolist():
            mine = chosen == expert
            y[mine] = F.linear(x[mine], self.weight[expert], None if self.bias is None else self.bias[expert])
        return y


class MixtureOfExperts(nn.Module):
    """The sum of the chosen experts' outputs, each times its weight; every expert is a gated MLP.

    Shazeer et al. 2017, "Outrageously Large Neural Networks", section 2; Jiang et al. 2024, "Mixtral of Experts",
    section 2.1: the router's largest logits choose, and a softmax over them weighs. OLMoE's weights are a softmax over
    all experts, so that those of the chosen add up to less than 1.

        x ─ router ─ top n ─ softmax ─────────────┐
        x ─ gate ─ activation ─┐                  │
        x ─ up ────────────────┴ product ─ down ──┴ weighted sum over the chosen experts
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        assert config.n_experts is not None and config.n_experts_used is not None
        self.config, self.n_used = config, config.n_experts_used
        n_experts, d_model, d_mlp, bias = config.n_experts, config.d_model, config.d_mlp, config.mlp_bias
        self.router = Linear(d_model, n_experts, bias=config.router_bias)
        self.gate = ExpertLinear(n_experts, d_model, d_mlp, bias)
        self.up = ExpertLinear(n_experts, d_model, d_mlp, bias)
        self.down = ExpertLinear(n_experts, d_mlp, d_model, bias)

    def forward(self, x: Tensor, trace: Recorder = SILENT) -> Tensor:
        """Transform each position of x [..., S, d_model]; a choice is one of the experts a token goes to."""
        logits = trace.record("router_logits", self.router(x), ("position", "expert"))
        chosen = trace.record("chosen", logits.topk(self.n_used).indices, ("position", "choice"))
        weights = trace.record("weights", self._weights(logits, chosen), ("position", "choice"))

        x = x.unsqueeze(-2).expand(*chosen.shape, -1)  # [..., S, choice, d_model]
        gate = trace.record("gate", self.gate(x, chosen), ("position", "choice", "d_mlp"))
        pre = trace.record("pre", self.up(x, chosen), ("position", "choice", "d_mlp"))
        post = trace.record("post", gated_product(gate, pre, self.config), ("position", "choice", "d_mlp"))
        outs = trace.record("expert_out", self.down(post, chosen), ("position", "choice", "d_model"))
        return trace.record("out", (weights.unsqueeze(-1) * outs).sum(-2), ("position", "d_model"))

    def _weights(self, logits: Tensor, chosen: Tensor) -> Tensor:
        """Return the weight of each chosen expert, [..., S, choice]."""
        if self.config.expert_weights_over == "all":
            return logits.softmax(-1).gather(-1, chosen)
        return logits.gather(-1, chosen).softmax(-1)
