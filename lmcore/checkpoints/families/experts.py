"""Families with a mixture of experts: Mixtral, Qwen3-MoE, OLMoE, gpt-oss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lmcore.checkpoints.families.declaration import SIZES, Family, real, switch, whole
from lmcore.checkpoints.families.gemma import local_blocks
from lmcore.checkpoints.families.llama import ATTENTION_BIAS, NAMES
from lmcore.checkpoints.fields import Fields
from lmcore.checkpoints.hf_fields import rotation, windows, windows_everywhere
from lmcore.checkpoints.names import Names, TensorLocation

_TRAINING = ("router_aux_loss_coef", "output_router_logits", "router_jitter_noise")


def _with_experts(expert: str, gate: str, up: str, down: str, router: str) -> Names:
    """Return LLaMA's names with these in the MLP's place; an expert's name holds {e}, its number."""
    experts = {f"mlp.{ours}": f"{expert}.{theirs}" for ours, theirs in (("gate", gate), ("up", up), ("down", down))}
    return replace(NAMES, block={**NAMES.block, **experts, "mlp.router": router})


def _weights_over(fields: Fields, _read: Mapping[str, Any]) -> dict[str, Any]:
    return {"expert_weights_over": "chosen" if fields.switch("norm_topk_prob", False) else "all"}


MIXTRAL = Family(
    names=_with_experts("block_sparse_moe.experts.{e}", "w1", "w3", "w2", router="block_sparse_moe.gate"),
    said={
        **SIZES,
        "norm_eps": real("rms_norm_eps", 1e-5),
        "n_experts": whole("num_local_experts", 8),
        "n_experts_used": whole("num_experts_per_tok", 2),
    },
    rules=(rotation(default_base=1_000_000.0), windows_everywhere),
    harmless=_TRAINING,
)

_OWN_MLPS = _with_experts("mlp.experts.{e}", "gate_proj", "up_proj", "down_proj", router="mlp.gate")


def _qwen3_windows(fields: Fields, sized: Mapping[str, Any]) -> dict[str, Any]:
    """Read the window of every block, which counts only with its switch."""
    if not fields.switch("use_sliding_window", False):
        fields.get("sliding_window"), fields.get("max_window_layers")
        return {}
    return windows_everywhere(fields, sized)


QWEN3_MOE = Family(
    names=_OWN_MLPS,
    said={
        **SIZES,
        **ATTENTION_BIAS,
        "d_mlp": whole("moe_intermediate_size", 768),
        "n_experts": whole("num_experts", 128, newer="num_local_experts"),
        "n_experts_used": whole("num_experts_per_tok", 8),
    },
    always=dict(qk_norm=True),
    rules=(rotation(), _qwen3_windows, _weights_over),
    required={"decoder_sparse_step": (1,), "mlp_only_layers": ([],)},
    harmless=("intermediate_size", *_TRAINING),
)

OLMOE = Family(
    names=_OWN_MLPS,
    said={
        **SIZES,
        **ATTENTION_BIAS,
        "norm_eps": real("rms_norm_eps", 1e-5),
        "n_experts": whole("num_experts", 64, newer="num_local_experts"),
        "n_experts_used": whole("num_experts_per_tok", 8),
    },
    always=dict(qk_norm=True, qk_norm_over="all_heads"),
    rules=(rotation(), _weights_over),
    harmless=_TRAINING,
)


def _every_second_window(fields: Fields, sized: Mapping[str, Any]) -> dict[str, Any]:
    local = local_blocks(sized["n_layers"], pattern=2)
    kinds = ["sliding_attention" if i in local else "full_attention" for i in range(sized["n_layers"])]
    return windows(fields, sized["n_layers"], kinds)


def _gpt_oss_expert(part: str) -> TensorLocation:
    location = TensorLocation("mlp.experts.gate_up_proj", transposed=True, endings=("", "_bias"))
    return replace(location, part=part, of=("gate", "up"), order="in_turn")


GPT_OSS = Family(
    names=replace(
        NAMES,
        block={
            **NAMES.block,
            "attn.sinks": TensorLocation("self_attn.sinks", endings=("", ""), bare=True),
            "mlp.router": "mlp.router",
            "mlp.gate": _gpt_oss_expert("gate"),
            "mlp.up": _gpt_oss_expert("up"),
            "mlp.down": TensorLocation("mlp.experts.down_proj", transposed=True, endings=("", "_bias")),
        },
    ),
    said={
        **{ours: reader for ours, reader in SIZES.items() if ours != "activation"},
        "norm_eps": real("rms_norm_eps", 1e-5),
        "d_head": whole("head_dim", 64),
        "n_experts": whole("num_local_experts", 128),
        "n_experts_used": whole("num_experts_per_tok", 4),
        "mlp_limit": real("swiglu_limit", 7.0),
        "attention_bias": switch("attention_bias", True),
        "attention_out_bias": switch("attention_bias", True),
    },
    always=dict(activation="gelu_sigmoid", mlp_up_offset=1.0, mlp_bias=True, router_bias=True, attention_sinks=True),
    rules=(rotation(default_base=150_000.0), _every_second_window),
    required={"hidden_act": ("silu",), "swiglu_alpha": (1.702,)},
    unset={"sliding_window": 128},
    left_out={
        "rope_parameters": {
            "rope_type": "yarn",
            "factor": 32.0,
            "truncate": False,
            "original_max_position_embeddings": 4096,
        }
    },
    harmless=("experts_per_token", "initial_context_length", *_TRAINING),
)
