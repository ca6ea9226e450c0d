"""A model whose RoPE is stretched after training, to be asked about longer texts than it was trained on."""

from __future__ import annotations

from dataclasses import replace

from lmcore.checkpoints.weights import build, own_tensors
from lmcore.config import RopeScaling
from lmcore.language_model import LanguageModel


def with_rope_scaling(lm: LanguageModel, scaling: RopeScaling | None) -> LanguageModel:
    """Return a copy of the model under another scaling of RoPE.

    YaRN also sharpens the softmax: rotated queries and keys grow by its attention factor, scores by its square.

    Args:
        lm: a model with RoPE.
        scaling: how to stretch; None takes a scaling away.

    Raises:
        ValueError: when the model has no RoPE.
    """
    config = lm.config
    if config.position_encoding != "rope":
        raise ValueError(f"{lm.name} has position_encoding = {config.position_encoding!r}; only RoPE can be scaled.")
    model = build(replace(config, rope_scaling=scaling), own_tensors(lm.model), lm.name)
    return LanguageModel(lm.name, model, lm.tokenizer, lm.end_tokens, lm.card, lm.chat_template)
