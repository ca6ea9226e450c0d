"""Products written in names: one text gives the symbols, the numbers and the value, so they cannot disagree."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from lmcore.config import ModelConfig

# A factor is a word or a bracketed product, which is shown as one number: (n_heads * d_head).
_FACTOR = re.compile(r"\([^()]*\)|\w+")
_WORD = re.compile(r"\w+")


class Product(NamedTuple):
    """A product in symbols, in numbers, and its value."""

    symbols: str
    formula: str
    value: int


def product(symbols: str, config: ModelConfig, **quantities: int) -> Product:
    """Evaluate a product of config fields, whole numbers and named quantities.

    Args:
        symbols: factors joined by " * "; a bracketed product becomes a single number.
        config: where field names are looked up.
        quantities: further names, such as the number of tokens.

    Returns:
        The symbols, the same with numbers, and the value.

    >>> config = ModelConfig(vocab_size=6, d_model=8, n_layers=3, n_heads=2, context_length=4)
    >>> product("n_layers * d_model * (n_heads * d_head)", config)
    Product(symbols='n_layers * d_model * (n_heads * d_head)', formula='3 x 8 x 8', value=192)
    """

    def number(word: str) -> int:
        if word.isdigit():
            return int(word)
        return quantities[word] if word in quantities else getattr(config, word)

    factors = [math.prod(number(word) for word in _WORD.findall(factor)) for factor in _FACTOR.findall(symbols)]
    return Product(symbols, " x ".join(map(str, factors)), math.prod(factors))
