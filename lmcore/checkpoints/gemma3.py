"""Gemma 3, the language model (Hugging Face names): four norms a block, norms on q and k, local and global blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lmcore.checkpoints.fields import Fields
from lmcore.checkpoints.hf_fields import HARMLESS, LLAMA_NAMES, rope, sizes, windows
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
_PATTERN = 6  # every sixth block is global, unless the file says otherwise


def config_from(values: Mapping[str, Any]) -> ModelConfig:
    """Translate the fields of a Gemma 3 `config.json`; of a model that sees pictures, those of its language model.

    Raises:
        ValueError: for a field or value that is not understood, naming it.
    """
    values = _DEFAULTS | dict(values.get("text_config", values))
    fields = Fields(values, (*HARMLESS, "cache_implementation"))
    fields.require("hidden_activation", "gelu_pytorch_tanh")
    fields.require("hidden_act", "gelu_pytorch_tanh")
    fields.require("use_bidirectional_attention", False)
    fields.require("attention_bias", False)
    fields.require("attn_logit_softcapping", None)  # Gemma 2's; the reference for Gemma 3 does not apply it
    sized = sizes(fields)
    pattern = fields.whole("sliding_window_pattern", fields.whole("_sliding_window_pattern", _PATTERN))
    window = windows(fields, sized["n_layers"]) or {
        "local_layers": local_blocks(sized["n_layers"], pattern),
        "sliding_window": fields.whole("sliding_window"),
    }
    config = ModelConfig(
        **sized,
        **_ropes(fields),
        **window,
        norm_unit_offset=True,
        qk_norm=True,
        sandwich_norm=True,
        activation="gelu_tanh",
        embedding_scale=math.sqrt(sized["d_model"]),
        attention_scale=fields.real("query_pre_attn_scalar", 256) ** -0.5,
        logit_softcap=fields.get("final_logit_softcapping"),
        tie_embeddings=fields.switch("tie_word_embeddings", True),
    )
    fields.finish()
    return config


def local_blocks(n_layers: int, pattern: int = _PATTERN) -> tuple[int, ...]:
    """Return the blocks with a sliding window: all but every `pattern`-th.

    >>> local_blocks(8)
    (0, 1, 2, 3, 4, 6, 7)
    """
    return tuple(i for i in range(n_layers) if (i + 1) % pattern)


def _ropes(fields: Fields) -> dict[str, Any]:
    """Read the two bases, from the older fields or the newer table of tables."""
    table = fields.get("rope_parameters")
    if table is None:
        table = {
            "full_attention": dict(fields.get("rope_scaling", {})),
            "sliding_attention": {"rope_theta": fields.real("rope_local_base_freq", 10_000.0)},
        }
        table["full_attention"].setdefault("rope_theta", fields.real("rope_theta", 1_000_000.0))
    if not isinstance(table, dict) or set(table) != {"full_attention", "sliding_attention"}:
        raise ValueError(f"rope_parameters must have full_attention and sliding_attention, got {table!r:.80}.")
    base, scaling = rope(table["full_attention"], 1_000_000.0)
    local_base, local_scaling = rope(table["sliding_attention"], 10_000.0)
    if local_scaling is not None:
        raise ValueError(f"rope_parameters.sliding_attention: the scaling {local_scaling.kind!r} is not supported.")
    return {"rope_base": base, "rope_scaling": scaling, "rope_base_local": local_base}
