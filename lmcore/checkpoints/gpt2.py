"""GPT-2 (Hugging Face names): config and weights there -> config and weights here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from lmcore.config import ModelConfig

_ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu", "relu": "relu"}


def config_from(values: Mapping[str, Any]) -> ModelConfig:
    """Translate the fields of a GPT-2 `config.json`.

    Raises:
        ValueError: for a field value this model does not have, naming it.
    """
    if values.get("activation_function", "gelu_new") not in _ACTIVATIONS:
        raise ValueError(f"activation_function = {values['activation_function']!r} is not supported.")
    for name, supported in (
        ("scale_attn_by_inverse_layer_idx", False),
        ("scale_attn_weights", True),
        ("add_cross_attention", False),
    ):
        if values.get(name, supported) != supported:
            raise ValueError(f"{name} = {values[name]!r} is not supported; it must be {supported}.")
    return ModelConfig(
        vocab_size=values["vocab_size"],
        d_model=values["n_embd"],
        n_layers=values["n_layer"],
        n_heads=values["n_head"],
        context_length=values["n_positions"],
        d_mlp=values.get("n_inner"),  # type: ignore[arg-type]
        norm="layernorm",
        norm_eps=values.get("layer_norm_epsilon", 1e-5),
        norm_bias=True,
        activation=_ACTIVATIONS[values.get("activation_function", "gelu_new")],  # type: ignore[arg-type]
        gated_mlp=False,
        position_encoding="learned",
        tie_embeddings=values.get("tie_word_embeddings", True),
        attention_bias=True,
        attention_out_bias=True,
        mlp_bias=True,
    )


def weights_from(tensors: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """Rename the tensors; GPT-2 stores matrices as [in, out] and q, k, v side by side.

    Tensors this family does not know keep their name, so that the loader refuses them by it.
    """
    ours: dict[str, Tensor] = {}
    for full_name, tensor in tensors.items():
        name = full_name.removeprefix("transformer.")
        if name in _TOP:
            ours[_TOP[name]] = tensor
        elif name.startswith("h."):
            _, layer, rest = name.split(".", 2)
            part, kind = rest.rsplit(".", 1)
            if kind == "weight" and not part.startswith("ln_"):
                tensor = tensor.T
            if part == "attn.c_attn":
                for target, piece in zip("qkv", tensor.split(config.d_model), strict=True):
                    ours[f"blocks.{layer}.attn.{target}.{kind}"] = piece
            elif part in _BLOCK:
                ours[f"blocks.{layer}.{_BLOCK[part]}.{kind}"] = tensor
            elif rest not in ("attn.bias", "attn.masked_bias"):  # the causal mask, stored by old files
                ours[full_name] = tensor
        else:
            ours[full_name] = tensor
    if config.tie_embeddings:
        ours.pop("head.weight", None)
    return ours


_TOP = {
    "wte.weight": "token_embedding.weight",
    "wpe.weight": "position.weight",
    "ln_f.weight": "final_norm.weight",
    "ln_f.bias": "final_norm.bias",
    "lm_head.weight": "head.weight",
}
_BLOCK = {
    "ln_1": "attn_norm",
    "attn.c_proj": "attn.out",
    "ln_2": "mlp_norm",
    "mlp.c_fc": "mlp.up",
    "mlp.c_proj": "mlp.down",
}
