"""A model with quantised numbers, made of one in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from lmcore.checkpoints.tensor_source import InMemory
from lmcore.checkpoints.weights import build, own_tensors
from lmcore.language_model import LanguageModel
from lmcore.loading.model_name import DTYPES, model_name
from lmcore.quantisation import kind_named, round_weights


def quantised(
    lm: LanguageModel,
    weights: str | None = None,
    int8_cache: bool = False,
    said: Callable[[float], None] = lambda share: None,
) -> LanguageModel:
    """Return a model whose weights are quantised and read back, or whose KV cache is.

    The model given is left as it is; the tensors that do not change, both share.

    Args:
        lm: the model.
        weights: a name in `lmcore.quantisation.KINDS`, or "bfloat16"; None and "float32" leave them as they are.
        int8_cache: whether keys and values are kept in 8 bits.
        said: told the share that is done, in [0, 1]; what it raises ends the work.

    Raises:
        ValueError: for a kind that is not known, or numbers too large for it.

    >>> import lmcore
    >>> quantised(lmcore.load("small-world"), "q4_0").name
    'small-world:q4_0'
    """
    config = replace(lm.config, int8_cache=int8_cache or lm.config.int8_cache)
    dtype = DTYPES.get(weights or "float32", torch.float32)
    model = build(config, _Shared(own_tensors(lm.model), lm.name), lm.name, dtype, checked=True)
    if weights is not None and weights not in DTYPES:
        round_weights(model, kind_named(weights), said)
    name = model_name(lm.name)
    name = replace(name, weights=weights or name.weights, int8_cache=int8_cache or name.int8_cache)
    return LanguageModel(str(name), model, lm.tokenizer, lm.end_tokens, lm.card, lm.chat_template)


class _Shared(InMemory):
    """Tensors that stay where they are: the model built of them has no copies."""

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        """Return a tensor itself, where it has this dtype."""
        return self._tensors[name].detach().to(dtype)
