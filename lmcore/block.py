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

    The pre-norm arrangement of GPT-2 and LLaMA (Xiong et al. 2020, figure 1b). With sandwich norms,
    as in Gemma, attn and mlp are normed once more before they are added.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attn_norm = make_norm(config)
        self.attn = Attention(config)
        self.attn_post_norm = make_norm(config) if config.sandwich_norm else None
        self.mlp_norm = make_norm(config)
        self.mlp = MLP(config)
        self.mlp_post_norm = make_norm(config) if config.sandwich_norm else None

    def forward(
        self, x: Tensor, context: AttentionContext, cache: LayerCache | None = None, trace: Recorder = SILENT
    ) -> Tensor:
        """Move the residual stream x [..., S, d_model] one block on."""
        x = trace.record("resid_pre", x, ("position", "d_model"))
        attn_out = self.attn(self.attn_norm(x, trace.under("attn_norm")), context, cache, trace.under("attn"))
        if self.attn_post_norm is not None:
            attn_out = self.attn_post_norm(attn_out, trace.under("attn_post_norm"))
        x = trace.record("resid_mid", x + attn_out, ("position", "d_model"))
        mlp_out = self.mlp(self.mlp_norm(x, trace.under("mlp_norm")), trace.under("mlp"))
        if self.mlp_post_norm is not None:
            mlp_out = self.mlp_post_norm(mlp_out, trace.under("mlp_post_norm"))
        return trace.record("resid_post", x + mlp_out, ("position", "d_model"))
