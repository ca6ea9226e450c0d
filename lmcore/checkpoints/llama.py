"""LLaMA (Hugging Face names): config and weights there -> config and weights here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from lmcore.config import ModelConfig


def config_from(values: Mapping[str, Any]) -> ModelConfig:
    """Translate the fields of a LLaMA `config.json`.

    Raises:
        ValueError: for a field value this model does not have, naming it.
    """
    if values.get("hidden_act", "silu") != "silu":
        raise ValueError(f"hidden_act = {values['hidden_act']!r} is not supported; it must be 'silu'.")
    rope = values.get("rope_parameters") or values.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind != "default":
        raise ValueError(f"rope_type = {kind!r} is not supported; it must be 'default'.")
    return ModelConfig(
        vocab_size=values["vocab_size"],
        d_model=values["hidden_size"],
        n_layers=values["num_hidden_layers"],
        n_heads=values["num_attention_heads"],
        n_kv_heads=values.get("num_key_value_heads"),  # type: ignore[arg-type]
        d_head=values.get("head_dim"),  # type: ignore[arg-type]
        d_mlp=values["intermediate_size"],
        context_length=values["max_position_embeddings"],
        norm_eps=values["rms_norm_eps"],
        rope_base=rope.get("rope_theta", values.get("rope_theta", 10_000.0)),
        tie_embeddings=values.get("tie_word_embeddings", False),
        attention_bias=values.get("attention_bias", False),
        attention_out_bias=values.get("attention_bias", False),
        mlp_bias=values.get("mlp_bias", False),
    )


def weights_from(tensors: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """Rename the tensors; tensors this family does not know keep their name, so that the loader refuses them by it."""
    ours: dict[str, Tensor] = {}
    for full_name, tensor in tensors.items():
        name = full_name.removeprefix("model.")
        if name in _TOP:
            ours[_TOP[name]] = tensor
            continue
        layer_name = name.removeprefix("layers.")
        layer, _, rest = layer_name.partition(".")
        part, _, kind = rest.rpartition(".")
        ours[f"blocks.{layer}.{_BLOCK[part]}.{kind}" if part in _BLOCK else full_name] = tensor
    if config.tie_embeddings:
        ours.pop("head.weight", None)
    return ours


_TOP = {
    "embed_tokens.weight": "token_embedding.weight",
    "norm.weight": "final_norm.weight",
    "lm_head.weight": "head.weight",
}
_BLOCK = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn.q",
    "self_attn.k_proj": "attn.k",
    "self_attn.v_proj": "attn.v",
    "self_attn.o_proj": "attn.out",
    "post_attention_layernorm": "mlp_norm",
    "mlp.gate_proj": "mlp.gate",
    "mlp.up_proj": "mlp.up",
    "mlp.down_proj": "mlp.down",
}
