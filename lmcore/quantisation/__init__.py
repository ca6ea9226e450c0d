"""Weights as small whole numbers: the kinds of quantisation, each one declaration, and the blocks they make.

A block of weights w shares a scale d, in some kinds a minimum m too; each weight is kept as a small whole number q and
read back as

    w' = d q + m

What is computed with here is w', in float32: the numbers of the quantised file, on an ordinary model.
"""

from lmcore.quantisation.kinds import KINDS, Blocks, Kind, kind_named
from lmcore.quantisation.tensors import (
    Stored,
    bits_per_weight,
    is_quantised,
    kind_for,
    round_weights,
    size_of,
    stored,
)

__all__ = [
    "KINDS",
    "Blocks",
    "Kind",
    "Stored",
    "bits_per_weight",
    "is_quantised",
    "kind_for",
    "kind_named",
    "round_weights",
    "size_of",
    "stored",
]
