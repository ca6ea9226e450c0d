"""The name of a model with what is to be done to its numbers: "smollm2-135m-instruct:q4_0:kv8"."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from lmcore.quantisation import KINDS

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
"""The dtypes weights can have, by name."""

INT8_CACHE = "kv8"
"""What says that the KV cache keeps 8-bit numbers."""

WEIGHTS = (*DTYPES, *KINDS)
"""What the weights can be, by name: a dtype, or a kind of quantisation, whose numbers are computed with in float32."""


@dataclass(frozen=True)
class ModelName:
    """A model's name in its parts; `str` puts them together again.

    Attributes:
        bare: the model's own name.
        weights: one of WEIGHTS; "" where the name says nothing, which is float32.
        int8_cache: whether the KV cache is quantised.
    """

    bare: str
    weights: str = ""
    int8_cache: bool = False

    @property
    def dtype(self) -> torch.dtype | None:
        """The dtype that it says the weights have; None where it says nothing."""
        return DTYPES.get(self.weights, torch.float32) if self.weights else None

    @property
    def plain(self) -> bool:
        """Whether the numbers are those of the model's file in float32."""
        return self.weights in ("", "float32") and not self.int8_cache

    def __str__(self) -> str:
        weights = "" if self.weights in ("", "float32") else f":{self.weights}"
        return f"{self.bare}{weights}{f':{INT8_CACHE}' if self.int8_cache else ''}"


def model_name(name: str) -> ModelName:
    """Take a name apart; what follows a colon and means nothing here belongs to the model's own name.

    >>> model_name("gemma-3-270m:q4_0:kv8")
    ModelName(bare='gemma-3-270m', weights='q4_0', int8_cache=True)
    >>> model_name("gemma-3-270m"), str(model_name("gemma-3-270m:kv8:q4_0"))
    (ModelName(bare='gemma-3-270m', weights='', int8_cache=False), 'gemma-3-270m:q4_0:kv8')
    """
    found = ModelName(name)
    while True:
        bare, _, last = found.bare.rpartition(":")
        if bare and last in WEIGHTS and not found.weights:
            found = replace(found, bare=bare, weights=last)
        elif bare and last == INT8_CACHE and not found.int8_cache:
            found = replace(found, bare=bare, int8_cache=True)
        else:
            return found
