"""Small random models that between them have every kind of part, and traced passes of theirs."""

from __future__ import annotations

from typing import Any

import torch

from lmcore.config import ModelConfig
from lmcore.model import Model
from lmcore.trace import Trace

CONFIGS: dict[str, dict[str, Any]] = {
    "rope, grouped heads": {"n_kv_heads": 2},
    "interleaved rope, one key head": {"n_kv_heads": 1, "rope_layout": "interleaved"},
    "alibi": {"position_encoding": "alibi"},
    "relative": {"position_encoding": "relative", "tie_embeddings": False},
    "sinusoidal, scaled": {"position_encoding": "sinusoidal", "embedding_scale": 4.0},
    "gpt2-like, every bias": {
        "position_encoding": "learned",
        "norm": "layernorm",
        "norm_bias": True,
        "activation": "gelu_tanh",
        "gated_mlp": False,
        "attention_bias": True,
        "attention_out_bias": True,
        "mlp_bias": True,
        "head_bias": True,
    },
    "layernorm without bias": {"position_encoding": "none", "norm": "layernorm", "activation": "relu"},
    "gemma-like": {
        "sandwich_norm": True,
        "norm_unit_offset": True,
        "qk_norm": True,
        "n_kv_heads": 1,
        "embedding_scale": 4.0,
        "activation": "gelu_tanh",
        "local_layers": (0, 2),
        "sliding_window": 3,
        "rope_base_local": 100.0,
        "attention_scale": 0.4,
        "attention_softcap": 5.0,
        "logit_softcap": 30.0,
    },
    "normed keys without rope, sandwich layernorm": {
        "qk_norm": True,
        "position_encoding": "none",
        "norm": "layernorm",
        "norm_bias": True,
        "sandwich_norm": True,
        "mlp_bias": True,
        "attention_out_bias": True,
    },
    "norms after only, over all heads": {
        "pre_norm": False,
        "sandwich_norm": True,
        "qk_norm": True,
        "qk_norm_over": "all_heads",
        "n_kv_heads": 2,
    },
    "parallel, scaled residual and logits, partial and missing rope": {
        "parallel_residual": True,
        "residual_scale": 0.3,
        "logit_scale": 0.5,
        "rope_dims": 2,
        "unrotated_layers": (1,),
    },
    "experts, sinks, a limit": {
        "n_experts": 5,
        "n_experts_used": 2,
        "router_bias": True,
        "mlp_bias": True,
        "mlp_limit": 1.0,
        "mlp_up_offset": 1.0,
        "activation": "gelu_sigmoid",
        "attention_sinks": True,
    },
}
IDS = [3, 1, 4, 1, 5, 9, 2]


def traced(name: str, dtype: torch.dtype = torch.float32) -> tuple[Model, Trace]:
    """Return a random model, every parameter of it away from 0 and 1, and a traced pass over IDS."""
    torch.manual_seed(7)
    sizes = {"vocab_size": 23, "d_model": 16, "n_layers": 3, "n_heads": 4, "context_length": 16, "d_mlp": 24}
    model = Model(ModelConfig(**{**sizes, **CONFIGS[name]})).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.4 + 0.1)
        model.to(dtype)
        trace = Trace()
        model(torch.tensor(IDS), trace)
    return model, trace
