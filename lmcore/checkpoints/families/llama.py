"""LLaMA and the dense families that change little in it: Mistral, Qwen 2 and 3, SmolLM3, Granite, OLMo 2, Phi-3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lmcore.checkpoints.families.declaration import SIZES, Family, real, switch
from lmcore.checkpoints.fields import Fields
from lmcore.checkpoints.hf_fields import rotation, windows, windows_everywhere
from lmcore.checkpoints.names import Names, TensorLocation

NAMES = Names(
    top={"token_embedding": "embed_tokens", "final_norm": "norm", "head": "lm_head"},
    block={
        "attn_norm": "input_layernorm",
        "attn.q": "self_attn.q_proj",
        "attn.k": "self_attn.k_proj",
        "attn.v": "self_attn.v_proj",
        "attn.q_norm": "self_attn.q_norm",
        "attn.k_norm": "self_attn.k_norm",
        "attn.out": "self_attn.o_proj",
        "mlp_norm": "post_attention_layernorm",
        "mlp.gate": "mlp.gate_proj",
        "mlp.up": "mlp.up_proj",
        "mlp.down": "mlp.down_proj",
    },
    block_prefix="layers.{i}.",
    prefixes=("model.",),
    ignored=r"layers\.\d+\.self_attn\.rotary_emb\.inv_freq",  # RoPE's frequencies, stored by old files
)
"""The names of LLaMA, which most families after it share."""

ATTENTION_BIAS = {"attention_bias": switch("attention_bias"), "attention_out_bias": switch("attention_bias")}

LLAMA = Family(
    names=NAMES,
    said={**SIZES, **ATTENTION_BIAS, "mlp_bias": switch("mlp_bias")},
    rules=(rotation(),),
    required={"pretraining_tp": (1,)},  # slices the matrices: the same sums in another order
)

MISTRAL = Family(names=NAMES, said=SIZES, rules=(rotation(), windows_everywhere), left_out={"sliding_window": 4096})


def _qwen_windows(fields: Fields, sized: Mapping[str, Any]) -> dict[str, Any]:
    """Read the windows of the blocks from `max_window_layers` on; no list of layers, no switch: no windows."""
    first = fields.whole("max_window_layers") if fields.switch("use_sliding_window", False) else sized["n_layers"]
    wide = min(first, sized["n_layers"])
    kinds = ["full_attention"] * wide + ["sliding_attention"] * (sized["n_layers"] - wide)
    return windows(fields, sized["n_layers"], kinds)


QWEN2 = Family(
    names=NAMES,
    said=SIZES,
    always=dict(attention_bias=True),
    rules=(rotation(), _qwen_windows),
    unset={"sliding_window": 4096, "max_window_layers": 28},
)
QWEN3 = replace(
    QWEN2,
    said={**SIZES, **ATTENTION_BIAS},
    always=dict(qk_norm=True),
    unset={**QWEN2.unset, "head_dim": 128},
)


def _smollm3_layers(fields: Fields, sized: Mapping[str, Any]) -> dict[str, Any]:
    """Read the blocks without RoPE, every fourth where the file does not list them, and those with a window."""
    n_layers, every = sized["n_layers"], fields.whole("no_rope_layer_interval", 4)
    rotated = fields.get("no_rope_layers", [int((i + 1) % every != 0) for i in range(n_layers)])  # 1 where RoPE turns
    if not isinstance(rotated, list) or len(rotated) != n_layers or not set(rotated) <= {0, 1}:
        raise ValueError(f"no_rope_layers = {rotated!r:.80} must say 0 or 1 for each layer.")
    switched = fields.switch("use_sliding_window", False) and fields.get("sliding_window") is not None
    kinds = ["full_attention" if turned or not switched else "sliding_attention" for turned in rotated]
    if not switched:  # transformers then sees no window, whatever the list says
        fields.get("layer_types"), fields.get("sliding_window")
        local: dict[str, Any] = {}
    else:
        local = windows(fields, n_layers, kinds)
    return {"unrotated_layers": tuple(i for i, turned in enumerate(rotated) if not turned)} | local


SMOLLM3 = replace(
    LLAMA,
    rules=(rotation(default_base=2_000_000.0), _smollm3_layers),
    tied=True,
    harmless=("max_window_layers",),
)

GRANITE = replace(
    LLAMA,
    said={
        **LLAMA.said,
        "embedding_scale": real("embedding_multiplier", 1.0),
        "attention_scale": real("attention_multiplier", 1.0),
        "residual_scale": real("residual_multiplier", 1.0),
        "logit_scale": lambda fields: 1 / fields.real("logits_scaling", 1.0),
    },
)

OLMO2 = Family(
    names=replace(
        NAMES,
        block={
            **{ours: theirs for ours, theirs in NAMES.block.items() if ours not in ("attn_norm", "mlp_norm")},
            "attn_post_norm": "post_attention_layernorm",
            "mlp_post_norm": "post_feedforward_layernorm",
        },
    ),
    said={**SIZES, **ATTENTION_BIAS, "norm_eps": real("rms_norm_eps", 1e-5)},
    always=dict(pre_norm=False, sandwich_norm=True, qk_norm=True, qk_norm_over="all_heads"),
    rules=(rotation(),),
)

PHI3 = Family(
    names=replace(
        NAMES,
        block={
            **NAMES.block,
            **{f"attn.{part}": TensorLocation("self_attn.qkv_proj", part=part, of=("q", "k", "v")) for part in "qkv"},
            **{
                f"mlp.{part}": TensorLocation("mlp.gate_up_proj", part=part, of=("gate", "up"))
                for part in ("gate", "up")
            },
        },
    ),
    said={**SIZES, "norm_eps": real("rms_norm_eps", 1e-5)},
    rules=(rotation(partial="partial_rotary_factor", words={"su": "longrope", "yarn": "longrope"}), windows_everywhere),
    harmless=("resid_pdrop", "embd_pdrop"),
)
