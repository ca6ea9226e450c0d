"""One block's part of the counts: what all blocks have is n_layers times this."""

from __future__ import annotations

from lmcore.config import ModelConfig
from lmcore.parameters.compute import ComputeRow, compute
from lmcore.parameters.counts import TensorCount, count
from lmcore.parameters.formula import product


def block_matrices(config: ModelConfig) -> tuple[TensorCount, ...]:
    """Return the weight matrices of one block, without biases and norms.

    In a model with an encoder beside the decoder it is a block of the decoder.

    >>> config = ModelConfig(vocab_size=6144, d_model=768, n_layers=12, n_heads=12, context_length=8, d_mlp=1792)
    >>> sum(row.size for row in block_matrices(config))
    6488064
    """
    return tuple(
        TensorCount(row.name, row.group, *product(_without_layers(row.symbols), config))
        for row in count(config).rows
        if row.name.startswith("blocks.") and row.group in ("attention", "mlp") and not row.name.endswith(".bias")
    )


def mlp_compute(config: ModelConfig) -> tuple[ComputeRow, ...]:
    """Return the matrix products of one block's MLP for one token.

    >>> config = ModelConfig(vocab_size=32000, d_model=4096, n_layers=32, n_heads=32, context_length=2048, d_mlp=11008)
    >>> [row.formula for row in mlp_compute(config)], sum(row.flops for row in mlp_compute(config))
    (['1 x 4096 x 11008', '1 x 4096 x 11008', '1 x 11008 x 4096'], 270532608)
    """
    return tuple(
        ComputeRow(row.name, row.group, *product(_without_layers(row.symbols), config, new_tokens=1))
        for row in compute(config).rows
        if row.group == "mlp"
    )


def _without_layers(symbols: str) -> str:
    return " * ".join(factor for factor in symbols.split(" * ") if factor != "n_layers")
