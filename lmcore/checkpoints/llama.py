"""LLaMA (Hugging Face names): config and weights there -> config and weights here."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from lmcore.checkpoints.fields import Fields
from lmcore.checkpoints.hf_fields import LLAMA_NAMES, rope_of, sizes
from lmcore.config import ModelConfig

NAMES = LLAMA_NAMES


def config_from(fields: Fields) -> ModelConfig:
    """Translate the fields of a LLaMA `config.json`.

    Raises:
        ValueError: for a field or value that is not understood, naming it.
    """
    fields.require("hidden_act", "silu")
    fields.require("pretraining_tp", 1)  # slices the matrices: the same sums in another order
    bias = fields.switch("attention_bias", False)
    sized = sizes(fields)
    return ModelConfig(
        **sized,
        **rope_of(fields, sized),
        tie_embeddings=fields.switch("tie_word_embeddings", False),
        attention_bias=bias,
        attention_out_bias=bias,
        mlp_bias=fields.switch("mlp_bias", False),
    )


def weights_from(tensors: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """Rename the tensors."""
    return NAMES.rename(tensors, config)
