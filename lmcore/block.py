"""A transformer block: two residual steps."""

from __future__ import annotations

from torch import Tensor, nn

from lmcore.attention import Attention, AttentionContext
from lmcore.config import ModelConfig
from lmcore.experts import MixtureOfExperts
from lmcore.kv_cache import LayerCache
from lmcore.mlp import MLP
from lmcore.norm import make_norm
from lmcore.trace import SILENT, Recorder


class Block(nn.Module):
    """resid_mid = resid_pre + attn(norm(resid_pre)); resid_post = resid_mid + mlp(norm(resid_mid)).

    The pre-norm arrangement of GPT-2 and LLaMA (Xiong et al. 2020, figure 1b). With sandwich norms, as in Gemma, attn
    and mlp are normed once more before they are added; OLMo 2 has these norms only. With a parallel residual, as in
    GPT-NeoX, the MLP reads resid_pre too. `residual_scale`, as in Granite, multiplies what is added.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.attn_norm = make_norm(config) if config.pre_norm else None
        self.attn = Attention(config)
        self.attn_post_norm = make_norm(config) if config.sandwich_norm else None
        self.mlp_norm = make_norm(config) if config.pre_norm else None
        self.mlp = MLP(config) if config.n_experts is None else MixtureOfExperts(config)
        self.mlp_post_norm = make_norm(config) if config.sandwich_norm else None

    def forward(
        self, x: Tensor, context: AttentionContext, cache: LayerCache | None = None, trace: Recorder = SILENT
    ) -> Tensor:
        """Move the residual stream x [..., S, d_model] one block on."""
        x = trace.record("resid_pre", x, ("position", "d_model"))
        attn_in = _normed(x, self.attn_norm, trace.under("attn_norm"))
        attn_out = self.attn(attn_in, context, cache, trace.under("attn"))
        attn_out = _normed(attn_out, self.attn_post_norm, trace.under("attn_post_norm"))
        resid_mid = trace.record("resid_mid", x + self._scaled(attn_out, "attn_scaled", trace), ("position", "d_model"))
        mlp_in = _normed(x if self.config.parallel_residual else resid_mid, self.mlp_norm, trace.under("mlp_norm"))
        mlp_out = self.mlp(mlp_in, trace.under("mlp"))
        mlp_out = _normed(mlp_out, self.mlp_post_norm, trace.under("mlp_post_norm"))
        return trace.record(
            "resid_post", resid_mid + self._scaled(mlp_out, "mlp_scaled", trace), ("position", "d_model")
        )

    def _scaled(self, x: Tensor, name: str, trace: Recorder) -> Tensor:
        """Return x times residual_scale, recorded where that is not 1."""
        scale = self.config.residual_scale
        return x if scale == 1 else trace.record(name, x * scale, ("position", "d_model"))


def _normed(x: Tensor, norm: nn.Module | None, trace: Recorder) -> Tensor:
    """Return x through a norm, or as it is where the block has none there."""
    return x if norm is None else norm(x, trace)
