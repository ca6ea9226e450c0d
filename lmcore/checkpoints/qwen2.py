"""Qwen 2 and 2.5 (Hugging Face names): LLaMA with biases on q, k and v."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmcore.checkpoints.fields import Fields
from lmcore.checkpoints.hf_fields import HARMLESS, LLAMA_NAMES, rope_of, sizes, windows
from lmcore.config import ModelConfig

NAMES = LLAMA_NAMES


def config_from(values: Mapping[str, Any]) -> ModelConfig:
    """Translate the fields of a Qwen2 `config.json`.

    Raises:
        ValueError: for a field or value that is not understood, naming it.
    """
    fields = Fields(values, HARMLESS)
    config = ModelConfig(**common(fields), attention_bias=True)
    fields.finish()
    return config


def common(fields: Fields) -> dict[str, Any]:
    """Read what Qwen2 and Qwen3 have in common, as fields of `ModelConfig`."""
    fields.require("hidden_act", "silu")
    fields.get("max_window_layers")  # says which layers have a window; so does layer_types
    sized = sizes(fields)
    window = windows(fields, sized["n_layers"])
    if fields.switch("use_sliding_window", False) and "local_layers" not in window:
        raise ValueError("use_sliding_window = True is not supported without layer_types.")
    return sized | rope_of(fields) | window | {"tie_embeddings": fields.switch("tie_word_embeddings", False)}
