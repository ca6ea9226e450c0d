"""Moving named tensors in and out of a model, with every name and shape checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from lmcore.config import ModelConfig
from lmcore.model import Model


def own_tensors(model: Model) -> dict[str, Tensor]:
    """Return the model's parameters by name, each storage once: a tied head is left out."""
    tensors = dict(model.named_parameters(remove_duplicate=False))
    if model.config.tie_embeddings:
        del tensors["head.weight"]
    return tensors


def build(config: ModelConfig, tensors: Mapping[str, Tensor], source: str) -> Model:
    """Return a model of this config with these weights, in float32.

    Args:
        config: the model's shape.
        tensors: a tensor for each name of `own_tensors`, in any floating dtype.
        source: the file's name, for errors.

    Raises:
        ValueError: for a missing, unknown or wrongly shaped tensor or a NaN, naming source and tensor.
    """
    model = Model(config)
    wanted = own_tensors(model)
    unknown = sorted(tensors.keys() - wanted.keys())
    if unknown:
        raise ValueError(f"{source}: tensor {unknown[0]!r} is not part of this model.")
    with torch.no_grad():
        for name, parameter in wanted.items():
            if name not in tensors:
                raise ValueError(f"{source}: tensor {name!r} is missing.")
            given = tensors[name]
            if given.shape != parameter.shape:
                raise ValueError(
                    f"{source}: tensor {name!r} has shape {list(given.shape)}, the config asks for {list(parameter.shape)}."
                )
            if not torch.isfinite(given).all():
                raise ValueError(f"{source}: tensor {name!r} holds NaN or infinite numbers.")
            parameter.copy_(given)
    return model


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
