"""Gemma 2 and 3, the language models: four norms a block, blocks that see a window, embeddings scaled by sqrt(d_model).

Gemma 2 caps scores and logits; Gemma 3 norms queries and keys, and rotates them faster in the blocks with a window.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lmcore.checkpoints.families.declaration import SIZES, Family, activation, optional_real
from lmcore.checkpoints.families.llama import NAMES
from lmcore.checkpoints.fields import Fields
from lmcore.checkpoints.hf_fields import rope, rotation, windows

_GEMMA2_PATTERN, _GEMMA3_PATTERN = 2, 6  # every second and every sixth block sees everything


def local_blocks(n_layers: int, pattern: int) -> tuple[int, ...]:
    """Return the blocks with a sliding window: all but every `pattern`-th.

    >>> local_blocks(8, pattern=6)
    (0, 1, 2, 3, 4, 6, 7)
    """
    return tuple(i for i in range(n_layers) if (i + 1) % pattern)


def _windows(fields: Fields, sized: Mapping[str, Any], pattern: int) -> dict[str, Any]:
    local = local_blocks(sized["n_layers"], pattern)
    kinds = ["sliding_attention" if i in local else "full_attention" for i in range(sized["n_layers"])]
    return windows(fields, sized["n_layers"], kinds)


def _gemma2_windows(fields: Fields, sized: Mapping[str, Any]) -> dict[str, Any]:
    return _windows(fields, sized, _GEMMA2_PATTERN)


def _gemma3_windows(fields: Fields, sized: Mapping[str, Any]) -> dict[str, Any]:
    older = fields.whole("_sliding_window_pattern", _GEMMA3_PATTERN)
    return _windows(fields, sized, fields.whole("sliding_window_pattern", older))


def _scales(fields: Fields, sized: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "attention_scale": fields.real("query_pre_attn_scalar", 256) ** -0.5,
        "embedding_scale": math.sqrt(sized["d_model"]),
    }


def _two_ropes(fields: Fields, sized: Mapping[str, Any]) -> dict[str, Any]:
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
    return everywhere | {"rope_base_local": local["rope_base"]}


GEMMA2 = Family(
    names=replace(
        NAMES,
        block={
            **NAMES.block,
            "attn_post_norm": "post_attention_layernorm",
            "mlp_norm": "pre_feedforward_layernorm",
            "mlp_post_norm": "post_feedforward_layernorm",
        },
    ),
    said={
        **SIZES,
        "activation": activation("hidden_activation", "hidden_act", default="gelu_pytorch_tanh"),
        "attention_softcap": optional_real("attn_logit_softcapping"),
        "logit_softcap": optional_real("final_logit_softcapping"),
    },
    always=dict(norm_unit_offset=True, sandwich_norm=True),
    rules=(rotation(), _gemma2_windows, _scales),
    left_out={"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0},
    unset={"head_dim": 256, "sliding_window": 4096},
    tied=True,
    harmless=("cache_implementation",),
)

GEMMA3 = replace(
    GEMMA2,
    names=replace(
        GEMMA2.names,
        prefixes=("language_model.model.", "model.language_model.", "language_model.", "model."),
        ignored=r"(vision_tower|multi_modal_projector)\..*",  # the larger models also see pictures
    ),
    always=dict(norm_unit_offset=True, sandwich_norm=True, qk_norm=True),
    rules=(_two_ropes, _gemma3_windows, _scales),
    left_out={},
    unset={  # the values of transformers' Gemma3TextConfig
        "vocab_size": 262_208,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "max_position_embeddings": 131_072,
        "sliding_window": 4096,
    },
    inner="text_config",
    harmless=(
        "cache_implementation",
        "vision_config",
        "mm_tokens_per_image",
        "boi_token_index",
        "eoi_token_index",
        "image_token_index",
    ),
)
