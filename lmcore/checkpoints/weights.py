"""Moving named tensors in and out of a model, with every name and shape checked."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from lmcore.checkpoints.tensor_source import InMemory, TensorSource
from lmcore.config import ModelConfig
from lmcore.model import Model

K = TypeVar("K")
V = TypeVar("V")
LONGEST_CONTEXT = 1 << 18
"""The longest context that is loaded: the tables of positions grow with it, whatever the file's size."""


def own_tensors(model: Model) -> dict[str, Tensor]:
    """Return the model's parameters by name, each storage once: a tied head is left out."""
    tensors: dict[str, Tensor] = dict(model.named_parameters(remove_duplicate=False))
    if model.config.tie_embeddings:
        del tensors["head.weight"]
    return tensors


def build(
    config: ModelConfig,
    tensors: Mapping[str, Tensor] | TensorSource,
    source: str,
    dtype: torch.dtype = torch.float32,
    said: Callable[[float], None] = lambda share: None,
    checked: bool = False,
) -> Model:
    """Return a model of this config with these weights.

    Names and shapes are compared before any weight is read or drawn, and tensors are read one at a
    time on each processor, so that a broken file costs little and a good one little more than its weights.

    Args:
        config: the model's shape.
        tensors: a tensor for each name of `own_tensors`, in any floating dtype.
        source: the file's name, for errors.
        dtype: the dtype of the model's weights.
        said: told the share of the weights that is there, in [0, 1]; what it raises ends the building.
        checked: the weights are known to be finite.

    Raises:
        ValueError: for a missing, unknown or wrongly shaped tensor or a NaN, naming source and tensor.
    """
    if not isinstance(tensors, TensorSource):
        tensors = InMemory(tensors, source)
    _require_plausible(config, tensors.shapes(), source)
    try:
        with _Undrawn():
            model = Model(config)
    except (RuntimeError, MemoryError) as error:  # the allocator's words
        raise ValueError(f"{source}: a model with the sizes of its config cannot be allocated: {error}.") from None
    except ArithmeticError as error:  # such as RoPE with the base 1
        raise ValueError(f"{source}: the numbers of its config cannot be computed with: {error}.") from None
    sizes = _require_fitting(own_tensors(model), tensors.shapes(), source)
    done, total = 0, sum(sizes.values())

    def read(name: str) -> Tensor:
        given = tensors.read(name, dtype)
        if not checked and not _is_finite(given):
            raise ValueError(f"{source}: tensor {name!r} holds NaN or infinite numbers.")
        return given

    with each_in_threads(read, sizes) as found:
        for (name, size), given in zip(sizes.items(), found, strict=True):
            path, _, leaf = name.rpartition(".")
            setattr(model.get_submodule(path), leaf, nn.Parameter(given))
            done += size
            said(done / total)
    if config.tie_embeddings:
        model.head.weight = model.token_embedding.weight
    return model


@contextmanager
def each_in_threads(work: Callable[[K], V], items: Iterable[K]) -> Iterator[Iterator[V]]:
    """Compute `work` of each item on all processors, for work that lets go of Python's lock.

    Gives the results in the items' order. What raises meanwhile ends the rest.
    """
    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        yield pool.map(work, items)
    finally:
        pool.shutdown(cancel_futures=True)


def _is_finite(tensor: Tensor) -> bool:
    """Whether no number is NaN or infinite; a NaN is the least and the greatest of its tensor."""
    if tensor.dtype == torch.float32:
        numbers = tensor.detach().numpy()  # one thread: on a busy machine several would wait for each other
        return math.isfinite(numbers.min()) and math.isfinite(numbers.max())
    return all(end.isfinite() for end in tensor.detach().aminmax())


def _require_plausible(config: ModelConfig, shapes: Mapping[str, tuple[int, ...]], source: str) -> None:
    """Refuse a config whose very size would take time or memory before its tensors are compared."""
    if config.n_layers > len(shapes):
        raise ValueError(f"{source} has {len(shapes)} tensors, too few for the {config.n_layers} layers of its config.")
    if config.context_length > LONGEST_CONTEXT:
        raise ValueError(
            f"{source}: context_length = {config.context_length:,} is more than the {LONGEST_CONTEXT:,} "
            "that are loaded."
        )
    table = shapes.get("token_embedding.weight")
    if table is not None and table != (config.vocab_size, config.d_model):
        raise ValueError(_misfit(source, "token_embedding.weight", table, (config.vocab_size, config.d_model)))
    rows = config.n_heads * config.d_head
    if rows > max((size for shape in shapes.values() for size in shape), default=0):
        raise ValueError(
            f"{source}: n_heads = {config.n_heads} heads of d_head = {config.d_head} ask for {rows:,} rows, "
            "more than any of its tensors has."
        )


def _require_fitting(
    wanted: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]], source: str
) -> dict[str, int]:
    """Compare the names and shapes a model has with what there is; return the number of weights by name."""
    unknown = sorted(shapes.keys() - wanted.keys())
    if unknown:
        raise ValueError(f"{source}: tensor {unknown[0]!r} is not part of this model.")
    for name, parameter in wanted.items():
        if name not in shapes:
            raise ValueError(f"{source}: tensor {name!r} is missing.")
        if tuple(shapes[name]) != tuple(parameter.shape):
            raise ValueError(_misfit(source, name, shapes[name], parameter.shape))
    return {name: parameter.numel() for name, parameter in wanted.items()}


def _misfit(source: str, name: str, given: Sequence[int], wanted: Sequence[int]) -> str:
    return f"{source}: tensor {name!r} has shape {list(given)}, the config asks for {list(wanted)}."


class _Undrawn(TorchFunctionMode):
    """Within it, `nn.init` leaves tensors as they are: weights that are about to be replaced are not drawn."""

    def __torch_function__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        if getattr(function, "__module__", None) == "torch.nn.init":
            return (kwargs or {}).get("tensor", args[0] if args else None)
        return function(*args, **(kwargs or {}))


def save_weights(model: Model, path: Path, dtype: torch.dtype) -> None:
    """Write the model's own tensors to a safetensors file, in the given dtype."""
    tensors = {name: tensor.detach().to(dtype).contiguous() for name, tensor in own_tensors(model).items()}
    safetensors.torch.save_file(tensors, path)


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file.

    Raises:
        ValueError: when the file is missing or broken, naming it.
    """
    try:
        return safetensors.torch.load_file(path)
    except FileNotFoundError:
        raise ValueError(f"{path.name} is missing; install the package again.") from None
    except SafetensorError as error:
        raise ValueError(f"{path.name} cannot be read as safetensors: {error}.") from error
