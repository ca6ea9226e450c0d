"""The models that ship with the project: one small world, learned by eight models that differ in one choice each."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

from lmcore.checkpoints.weights import build, read_weights
from lmcore.config import ModelConfig
from lmcore.language_model import LanguageModel
from lmcore.tokenizer import Tokenizer

FOLDER = Path(__file__).parent
DEFAULT = "small-world"


@dataclass(frozen=True)
class BuiltinModel:
    """A built-in model: its name and where its files lie."""

    name: str

    @property
    def weights_path(self) -> Path:
        """The weights, safetensors in float16."""
        return FOLDER / f"{self.name}.safetensors"

    @property
    def record_path(self) -> Path:
        """The record of how the weights were made, JSON."""
        return FOLDER / f"{self.name}.json"

    @property
    def snapshots_path(self) -> Path:
        """The token embedding at some steps of training, safetensors in float16 (default model only)."""
        return FOLDER / f"{self.name}.snapshots.safetensors"


@cache
def tokenizer() -> Tokenizer:
    """Return the tokenizer that all built-in models share; one object, so that what is encoded with it is kept too."""
    return Tokenizer.from_file(FOLDER / "tokenizer.json")


@cache
def configs() -> dict[str, ModelConfig]:
    """Return the config of every built-in model by name; each differs from the default in one choice.

    The sinusoidal model also scales its token vectors by sqrt(d_model), as the 2017 paper does.
    The learned table ends where training did, at 128 positions; the others can be asked further.
    The experts together have as many weights as the default's MLP; each token goes through a quarter of them.
    """
    default = ModelConfig(
        vocab_size=tokenizer().vocab_size, d_model=128, n_layers=4, n_heads=4, d_mlp=512, context_length=512
    )
    return {
        DEFAULT: default,
        f"{DEFAULT}-learned": replace(default, position_encoding="learned", context_length=128),
        f"{DEFAULT}-sinusoidal": replace(default, position_encoding="sinusoidal", embedding_scale=128**0.5),
        f"{DEFAULT}-alibi": replace(default, position_encoding="alibi"),
        f"{DEFAULT}-relative": replace(default, position_encoding="relative"),
        f"{DEFAULT}-none": replace(default, position_encoding="none"),
        f"{DEFAULT}-untied": replace(default, tie_embeddings=False),
        f"{DEFAULT}-experts": replace(default, d_mlp=64, n_experts=8, n_experts_used=2),
    }


def names() -> tuple[str, ...]:
    """Return the names of the built-in models, the default first."""
    return tuple(configs())


def load(name: str) -> LanguageModel:
    """Load a built-in model by name.

    Raises:
        ValueError: when its files are missing or broken, naming file and tensor.
    """
    path = BuiltinModel(name).weights_path
    return LanguageModel(name, build(configs()[name], read_weights(path), path.name), tokenizer())


def record(name: str = DEFAULT) -> dict[str, Any]:
    """Return the record of how a built-in model was trained: settings, seed, loss curve, held-out loss, entropy."""
    return json.loads(BuiltinModel(name).record_path.read_text(encoding="utf-8"))


def embedding_snapshots() -> dict[int, Tensor]:
    """Return the default model's token embedding [vocab_size, d_model] by number of training steps done, ascending."""
    tensors = safetensors.torch.load_file(BuiltinModel(DEFAULT).snapshots_path)
    return {int(step): tensors[step].float() for step in sorted(tensors, key=int)}
