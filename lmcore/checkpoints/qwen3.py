"""Qwen 3 (Hugging Face names): LLaMA with RMSNorm on q and k, and heads of a size of their own."""

from __future__ import annotations

from lmcore.checkpoints import qwen2
from lmcore.checkpoints.fields import Fields
from lmcore.checkpoints.hf_fields import LLAMA_NAMES
from lmcore.config import ModelConfig

NAMES = LLAMA_NAMES


def config_from(fields: Fields) -> ModelConfig:
    """Translate the fields of a Qwen3 `config.json`.

    Raises:
        ValueError: for a field or value that is not understood, naming it.
    """
    bias = fields.switch("attention_bias", False)
    shared = qwen2.common(fields, d_head=128)
    return ModelConfig(**shared, qk_norm=True, attention_bias=bias, attention_out_bias=bias)
