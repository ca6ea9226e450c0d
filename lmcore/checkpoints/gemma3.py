"""Gemma 3, the language model (Hugging Face names): four norms a block, norms on q and k, local and global blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lmcore.checkpoints.fields import Fields
from lmcore.checkpoints.hf_fields import LLAMA_NAMES, rope, sizes, windows
from lmcore.config import ModelConfig

NAMES = replace(
    LLAMA_NAMES,
    block={
        **LLAMA_NAMES.block,
        "attn_post_norm": "post_attention_layernorm",
        "mlp_norm": "pre_feedforward_layernorm",
        "mlp_post_norm": "post_feedforward_layernorm",
    },
    prefixes=("language_model.model.", "model.language_model.", "language_model.", "model."),
    ignored=r"(vision_tower|multi_modal_projector)\..*",  # the larger models also see pictures
)
_DEFAULTS = {
    "vocab_size": 262_208,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "max_position_embeddings": 131_072,
    "sliding_window": 4096,
}
"""What files leave out: the values of transformers' Gemma3TextConfig."""
HARMLESS = (
    "cache_implementation",
    "vision_config",
    "mm_tokens_per_image",
    "boi_token_index",
    "eoi_token_index",
    "image_token_index",
)
_PATTERN = 6  # every sixth block is global, unless the file says otherwise


def config_from(fields: Fields) -> ModelConfig:
    """Translate the fields of a Gemma 3 `config.json`; of a model that sees pictures, those of its language model.

    Raises:
        ValueError: for a field or value that is not understood, naming it.
    """
    outer = fields
    if fields.get("text_config"):
        fields = fields.within("text_config")
        fields.get("tie_word_embeddings")  # the head is the outer model's, and so is the switch
    fields.fill(_DEFAULTS)
    fields.require("hidden_activation", "gelu_pytorch_tanh")
    fields.require("hidden_act", "gelu_pytorch_tanh")
    sized = sizes(fields)
    pattern = fields.whole("sliding_window_pattern", fields.whole("_sliding_window_pattern", _PATTERN))
    local = local_blocks(sized["n_layers"], pattern)
    kinds = ["sliding_attention" if i in local else "full_attention" for i in range(sized["n_layers"])]
    return ModelConfig(
        **sized,
        **{"attention_scale": fields.real("query_pre_attn_scalar", 256) ** -0.5} | _ropes(fields, sized),
        **windows(fields, sized["n_layers"], kinds),
        norm_unit_offset=True,
        qk_norm=True,
        sandwich_norm=True,
        activation="gelu_tanh",
        embedding_scale=math.sqrt(sized["d_model"]),
        logit_softcap=fields.get("final_logit_softcapping"),
        tie_embeddings=outer.switch("tie_word_embeddings", True),
    )


def local_blocks(n_layers: int, pattern: int = _PATTERN) -> tuple[int, ...]:
    """Return the blocks with a sliding window: all but every `pattern`-th.

    >>> local_blocks(8)
    (0, 1, 2, 3, 4, 6, 7)
    """
    return tuple(i for i in range(n_layers) if (i + 1) % pattern)


def _ropes(fields: Fields, sized: Mapping[str, Any]) -> dict[str, Any]:
    """Read the two bases, from the older fields and the newer table of tables; the older change the global blocks'."""
    newer, older = fields.get("rope_parameters", {}), fields.get("rope_scaling", {})
    if not isinstance(newer, dict) or not set(newer) <= {"full_attention", "sliding_attention"}:
        raise ValueError(f"rope_parameters must have full_attention and sliding_attention, got {newer!r:.80}.")
    table = fields.within("rope_parameters")
    base, local_base = fields.real("rope_theta", 1_000_000.0), fields.real("rope_local_base_freq", 10_000.0)
    everywhere = rope(table.within("full_attention", over=older), sized, base)
    local = rope(table.within("sliding_attention"), sized, local_base)
    if (scaling := local["rope_scaling"]) is not None:
        raise ValueError(f"rope_parameters.sliding_attention: the scaling {scaling.kind!r} is not supported.")
    if "attention_scale" in everywhere:
        raise ValueError("rope_parameters.full_attention: 'yarn' would sharpen some blocks only; it is not supported.")
    return everywhere | {"rope_base_local": local["rope_base"]}
