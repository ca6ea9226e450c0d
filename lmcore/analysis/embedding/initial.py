"""A model before its first training step, made again from its seed."""

from __future__ import annotations

import torch

from lmcore.config import ModelConfig
from lmcore.model import Model


def initial_model(config: ModelConfig, seed: int) -> Model:
    """Return the model that training with this seed starts from; torch's own random state is left as it was.

    Args:
        config: the model's shape.
        seed: as in the record of a built-in model, `lmcore.builtin.record(name)["training"]["seed"]`.

    >>> config = ModelConfig(vocab_size=9, d_model=4, n_layers=1, n_heads=1, context_length=8)
    >>> first, again = (initial_model(config, seed=5).token_embedding.weight for _ in range(2))
    >>> torch.equal(first, again)
    True
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Model(config).eval()
