"""A transformer block: two residual steps."""

from __future__ import annotations

from torch import Tensor, nn

from lmcore.attention import Attention, AttentionContext
from lmcore.config import ModelConfig
from lmcore.kv_cache import LayerCache
from lmcore.mlp import MLP
from lmcore.norm import make_norm
from lmcore.trace import SILENT, Recorder


class Block(nn.Module):
    """resid_mid = resid_pre + attn(norm(resid_pre)); resid_post = resid_mid + mlp(norm(resid_mid)).

    The pre-norm arrangement of GPT-2 and LLaMA (Xiong et al. 2020, figure 1b).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attn_norm = make_norm(config)
        self.attn = Attention(config)
        self.mlp_norm = make_norm(config)
        self.mlp = MLP(config)

    def forward(
        self, x: Tensor, context: AttentionContext, cache: LayerCache | None = None, trace: Recorder = SILENT
    ) -> Tensor:
        """Move the residual stream x [..., S, d_model] one block on."""
        trace.record("resid_pre", x, ("position", "d_model"))
        x = x + self.attn(self.attn_norm(x, trace.under("attn_norm")), context, cache, trace.under("attn"))
        trace.record("resid_mid", x, ("position", "d_model"))
        x = x + self.mlp(self.mlp_norm(x, trace.under("mlp_norm")), trace.under("mlp"))
        trace.record("resid_post", x, ("position", "d_model"))
        return x
