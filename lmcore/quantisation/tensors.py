"""Which tensors of a model are quantised, what they take in a file, and putting the rounded numbers in their place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lmcore.quantisation.kinds import Kind, kind_named

_FLOAT16 = "float16"
_STEP = 1 << 23  # weights rounded at a time: several times as many bytes are in memory for them meanwhile


def is_quantised(name: str, shape: tuple[int, ...]) -> bool:
    """Whether a tensor of the model is quantised: every matrix, but for the table of positions and a router's.

    llama.cpp's quantize leaves the same ones (`tensor_allows_quantization` in llama-quant.cpp): norms, biases and all
    that has one axis, positions and routers. Here all others get the kind that was asked for, as with its --pure;
    without it, it gives some of them, the head's matrix for one, more bits.

    >>> is_quantised("blocks.0.attn.q.weight", (64, 64)), is_quantised("blocks.0.attn_norm.weight", (64,))
    (True, False)
    """
    kept = name.startswith("position.") or name.endswith("mlp.router.weight")
    return len(shape) >= 2 and name.endswith("weight") and not kept


def kind_for(kind: Kind, row: int) -> Kind | None:
    """Return the kind in which rows of this length are kept: the one asked for, its fallback, or None for float16."""
    if kind.fits(row):
        return kind
    return None if kind.fallback is None else kind_for(kind_named(kind.fallback), row)


@dataclass(frozen=True)
class Stored:
    """How a tensor lies in the file.

    Attributes:
        name: the tensor's.
        kind: the name of its kind, or a dtype.
        weights: how many numbers it has.
        nbytes: what they take.
    """

    name: str
    kind: str
    weights: int
    nbytes: int


def stored(name: str, tensor: Tensor, kind: Kind | None) -> Stored:
    """Return how a tensor lies in a file of this kind; None is for a file of the tensor's own dtype.

    What is not quantised lies there in the dtype it has here, matrices whose rows no kind fits in float16.
    """
    if kind is None or not is_quantised(name, tuple(tensor.shape)):
        return Stored(name, str(tensor.dtype).removeprefix("torch."), tensor.numel(), tensor.nbytes)
    found = kind_for(kind, tensor.shape[-1])
    if found is None:
        return Stored(name, _FLOAT16, tensor.numel(), 2 * tensor.numel())
    return Stored(name, found.name, tensor.numel(), found.n_bytes(tuple(tensor.shape)))


def size_of(model: nn.Module, kind: Kind | None) -> list[Stored]:
    """Return how every tensor of a model lies in a file of a kind, a tied matrix once."""
    return [stored(name, tensor, kind) for name, tensor in model.named_parameters()]


def bits_per_weight(model: nn.Module, kind: Kind | None) -> float:
    """Return the bits of a file of a kind for each of a model's weights, norms and biases included."""
    tensors = size_of(model, kind)
    return 8 * sum(tensor.nbytes for tensor in tensors) / sum(tensor.weights for tensor in tensors)


def rounded(name: str, matrix: Tensor, kind: Kind) -> Tensor:
    """Return a matrix quantised and read back, in its own dtype.

    Raises:
        ValueError: where a number is too large for its block's scale, which is kept in float16, naming the tensor.
    """
    found = kind_for(kind, matrix.shape[-1])
    rows = matrix.detach().flatten(0, -2)
    result = torch.empty(rows.shape, dtype=matrix.dtype)
    for some, there in zip(_in_steps(rows), _in_steps(result), strict=True):
        there.copy_(some.half() if found is None else found.blocks_of(some).values.view(some.shape))
    if not all(end.isfinite() for end in result.aminmax()):
        raise ValueError(f"{name} holds numbers too large for {kind.name}: its scales are kept in float16.")
    return result.view(matrix.shape)


def _in_steps(rows: Tensor) -> Iterable[Tensor]:
    return rows.split(max(_STEP // max(rows.shape[-1], 1), 1))


def round_weights(model: nn.Module, kind: Kind, said: Callable[[float], None] = lambda share: None) -> None:
    """Put quantised numbers in place of a model's weights, a tensor at a time; tied matrices stay one.

    The tensors that were there are left as they are, for others who have them.

    Args:
        model: of lmcore; its parameters' names say which are quantised.
        kind: which quantisation.
        said: told the share that is done, in [0, 1]; what it raises ends the work.

    Raises:
        ValueError: see `rounded`.
    """
    parameters = dict(model.named_parameters())
    total, done = sum(parameter.numel() for parameter in parameters.values()), 0
    for name, parameter in parameters.items():
        if is_quantised(name, tuple(parameter.shape)):
            parameter.data = rounded(name, parameter, kind)
        done += parameter.numel()
        said(done / total)
