"""LLaMA and the dense families that change little in it.

They are Mistral, Qwen 2 and 3, SmolLM3, Granite 3 and 4, OLMo 2, Phi-3, StableLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lmcore.checkpoints.families.declaration import SIZES, Family, real, switch, whole
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


_OF_MAMBA = (
    "mamba_chunk_size",
    "mamba_conv_bias",
    "mamba_d_conv",
    "mamba_d_head",
    "mamba_d_state",
    "mamba_expand",
    "mamba_n_groups",
    "mamba_n_heads",
    "mamba_proj_bias",
    "time_step_limit",
)


def _granite4_layers(fields: Fields, sized: Mapping[str, Any]) -> dict[str, Any]:
    """Read that every block has attention, with RoPE or without; the larger models have blocks of Mamba and experts."""
    kinds, n_layers = fields.get("layer_types"), sized["n_layers"]
    if not isinstance(kinds, list) or len(kinds) != n_layers or not set(kinds) <= {"attention", "full_attention"}:
        raise ValueError(f"layer_types = {kinds!r:.80} must be 'attention' for each layer; others are not supported.")
    turned = fields.get("position_embedding_type") == "rope"
    return {"unrotated_layers": () if turned else tuple(range(n_layers))}


GRANITE4 = replace(
    GRANITE,
    names=replace(
        NAMES,
        block={
            **NAMES.block,
            **{
                f"mlp.{part}": TensorLocation("shared_mlp.input_linear", part=part, of=("gate", "up"))
                for part in ("gate", "up")
            },
            "mlp.down": "shared_mlp.output_linear",
        },
    ),
    said={**GRANITE.said, "d_mlp": whole("shared_intermediate_size", 1024)},
    rules=(rotation(), _granite4_layers),
    required={"num_local_experts": (0,), "normalization_function": ("rmsnorm",)},
    left_out={"num_local_experts": 8},
    harmless=(
        "intermediate_size",
        "num_experts_per_tok",
        "init_method",
        "output_router_logits",
        "router_aux_loss_coef",
        *_OF_MAMBA,
    ),
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

STABLELM = Family(
    names=NAMES,
    said={
        **SIZES,
        "norm_eps": real("layer_norm_eps", 1e-5),
        "attention_bias": switch("use_qkv_bias"),
    },
    always=dict(norm="layernorm", norm_bias=True),
    rules=(rotation(partial="partial_rotary_factor", default_partial=0.25),),
    required={"use_parallel_residual": (False,)},  # with it, a block has one norm
    harmless=("hidden_dropout",),
)
