"""Qwen 2 and 2.5 (Hugging Face names): LLaMA with biases on q, k and v."""

from __future__ import annotations

from typing import Any

from lmcore.checkpoints.fields import Fields
from lmcore.checkpoints.hf_fields import LLAMA_NAMES, rope_of, sizes, windows
from lmcore.config import ModelConfig

NAMES = LLAMA_NAMES


def config_from(fields: Fields) -> ModelConfig:
    """Translate the fields of a Qwen2 `config.json`.

    Raises:
        ValueError: for a field or value that is not understood, naming it.
    """
    return ModelConfig(**common(fields), attention_bias=True)


def common(fields: Fields, d_head: int | None = None) -> dict[str, Any]:
    """Read what Qwen2 and Qwen3 have in common, as fields of `ModelConfig`; `d_head` is what files leave out."""
    fields.require("hidden_act", "silu")
    sized = sizes(fields)
    sized["d_head"] = sized["d_head"] or d_head
    fields.fill({"sliding_window": 4096, "max_window_layers": 28})
    first = fields.whole("max_window_layers") if fields.switch("use_sliding_window", False) else sized["n_layers"]
    wide = min(first, sized["n_layers"])  # the blocks before the first with a window
    kinds = ["full_attention"] * wide + ["sliding_attention"] * (sized["n_layers"] - wide)
    window = windows(fields, sized["n_layers"], kinds)
    return sized | rope_of(fields, sized) | window | {"tie_embeddings": fields.switch("tie_word_embeddings", False)}
