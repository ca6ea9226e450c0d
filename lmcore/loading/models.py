"""Models by name: what there is, and bringing one into memory."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from lmcore import builtin
from lmcore.checkpoints.hub import download, is_hub_id
from lmcore.checkpoints.packaged import PACKAGED
from lmcore.checkpoints.progress import Doing, LoadingCancelled, Progress, silent
from lmcore.checkpoints.split_files import all_parts, gguf_of, split_stem
from lmcore.language_model import LanguageModel
from lmcore.loading.model_name import DTYPES, INT8_CACHE, WEIGHTS, model_name
from lmcore.loading.quantised import quantised
from lmcore.quantisation import KINDS, round_weights

__all__ = ["FOLDER_VARIABLE", "AvailableModel", "Doing", "LoadingCancelled", "Progress", "available", "load"]

FOLDER_VARIABLE = "GLASS_BOX_LM_MODELS"
"""The environment variable that names a directory whose models `available` lists."""

_WEIGHTS = ", ".join(f":{weights}" for weights in WEIGHTS)


@dataclass(frozen=True)
class AvailableModel:
    """A model that `load` knows.

    Attributes:
        name: what `load` calls it.
        description: what sets it apart.
        installed: whether its files are here.
        install: the one line that brings it, for a model that comes as a package.
        size: bytes of its file, for such a model.
        licence: under which it may be used, for such a model.
    """

    name: str
    description: str
    installed: bool = True
    install: str = ""
    size: int = 0
    licence: str = ""


def available() -> tuple[AvailableModel, ...]:
    """Return the models that `load` knows by name: those built in, the default first, those that come as packages
    whether installed or not, and those in the directory that GLASS_BOX_LM_MODELS names."""
    found = [
        AvailableModel(
            name,
            f"{config.position_encoding}, {'tied' if config.tie_embeddings else 'untied'}, "
            f"{config.n_layers} layers, d_model {config.d_model}"
            + (f", {config.n_experts} experts" if config.n_experts else ""),
        )
        for name, config in builtin.configs().items()
    ]
    found += [
        AvailableModel(model.name, model.description, model.installed, model.install, model.size, model.licence)
        for model in PACKAGED.values()
    ]
    found += [AvailableModel(name, f"from {FOLDER_VARIABLE}") for name in _listed()]
    found += [
        replace(model, name=f"{model.name}:bfloat16", description=f"{model.description}; weights in bfloat16")
        for model in found[len(builtin.names()) :]
        if model.installed
    ]
    return tuple(found)


def built_in(name: str) -> bool:
    """Whether a name is that of a built-in model, quantised or not."""
    return model_name(name).bare in builtin.names()


def load(
    name: str | os.PathLike[str] = builtin.DEFAULT, dtype: torch.dtype | None = None, progress: Progress = silent
) -> LanguageModel:
    """Load a model.

    Args:
        name: a name that `available` lists, the path of a folder in Hugging Face's layout or of a GGUF file, or
            the id owner/model of one on the hub. After it may stand what the weights are to be, ":bfloat16" or
            ":q4_0" or another kind of `lmcore.quantisation.KINDS`, and ":kv8" for a KV cache of 8-bit numbers; the
            name of the model that is returned ends with these.
        dtype: the dtype of the weights, torch.float32 (when neither says) or torch.bfloat16. The latter takes half
            the memory and, where memory bandwidth is the limit, half the time; the numbers are then good to two
            or three digits.
        progress: called with what is being done and the share of it that is done. What it raises ends the loading,
            `LoadingCancelled` for instance.

    Raises:
        ValueError: for a name that is not known, or a file that is missing or broken, naming file and field.
    """
    given = model_name(os.fspath(name))
    if model_name(given.bare).bare != given.bare:
        raise ValueError(f"the name {os.fspath(name)!r} says twice what the weights are; give one of {_WEIGHTS}.")
    dtype = dtype or given.dtype or torch.float32
    if dtype not in DTYPES.values():
        raise ValueError(f"dtype must be torch.float32 or torch.bfloat16, got {dtype}.")
    if given.dtype not in (None, dtype):
        raise ValueError(f"dtype = {dtype} contradicts the name {os.fspath(name)!r}; give one of them.")
    lm = _load(given.bare, dtype, progress)
    weights = given.weights or str(dtype).removeprefix("torch.")
    given = replace(given, bare=lm.name, weights=weights)
    if given.weights in KINDS:
        round_weights(lm.model, KINDS[given.weights], functools.partial(progress, Doing.ROUNDING_WEIGHTS))
    if given.int8_cache:
        lm = quantised(lm, int8_cache=True)
    lm.name = str(given)
    return lm


def _load(name: str, dtype: torch.dtype, progress: Progress) -> LanguageModel:
    if name in builtin.names():
        return _in_dtype(builtin.load(name), dtype)
    if name in PACKAGED:
        return PACKAGED[name].load(dtype, progress)
    path = _listed().get(name, Path(name).expanduser())
    if path.is_dir():
        return _load_folder(path, path.name, dtype, progress)
    if path.suffix == ".gguf" and path.is_file():
        return _load_gguf(all_parts(path), split_stem(path), dtype, progress)
    if is_hub_id(name):
        return _load_folder(download(name, progress), name, dtype, progress)
    given = os.environ.get(FOLDER_VARIABLE)
    raise ValueError(
        f"no model is called {name!r}; choose one of {', '.join(model.name for model in available())}, or give the "
        "path of a model folder or a GGUF file that is there, or a hub id owner/model. A name from a server's folder "
        f"of models is known where the environment variable {FOLDER_VARIABLE} names that folder; here it is "
        f"{repr(given) if given else 'not set'}. After a name may stand one of {_WEIGHTS}, and "
        f":{INT8_CACHE}."
    )


def _load_folder(folder: Path, name: str, dtype: torch.dtype, progress: Progress) -> LanguageModel:
    from lmcore.checkpoints.hf_folder import load_folder

    if not any(folder.glob("*.safetensors")) and (parts := gguf_of(folder)):
        return _load_gguf(parts, name, dtype, progress)
    try:
        return load_folder(folder, name, dtype, progress)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _load_gguf(parts: list[Path], name: str, dtype: torch.dtype, progress: Progress) -> LanguageModel:
    from lmcore.checkpoints.gguf_model import load_gguf  # needs the gguf package, which takes time to import

    return load_gguf(parts, name, dtype, progress)


def _listed() -> dict[str, Path]:
    """The models in the directory that the environment names."""
    given = os.environ.get(FOLDER_VARIABLE)
    if not given or not Path(given).is_dir():
        return {}
    return {
        split_stem(path) if path.suffix == ".gguf" else path.name: path
        for path in sorted(Path(given).iterdir())
        if path.suffix == ".gguf" or (path / "config.json").is_file() or any(path.glob("*.gguf"))
    }


def _in_dtype(lm: LanguageModel, dtype: torch.dtype) -> LanguageModel:
    for parameter in lm.model.parameters():
        parameter.data = parameter.data.to(dtype)
    return lm
