"""Models by name: what there is, and bringing one into memory."""

from __future__ import annotations

from dataclasses import dataclass

from lmcore import builtin
from lmcore.language_model import LanguageModel


@dataclass(frozen=True)
class AvailableModel:
    """A model that `load` knows: its name, and what sets it apart."""

    name: str
    description: str


def available() -> tuple[AvailableModel, ...]:
    """Return the models that can be loaded, the default first."""
    return tuple(
        AvailableModel(
            name,
            f"{config.position_encoding}, {'tied' if config.tie_embeddings else 'untied'}, "
            f"{config.n_layers} layers, d_model {config.d_model}",
        )
        for name, config in builtin.configs().items()
    )


def load(name: str = builtin.DEFAULT) -> LanguageModel:
    """Load a model by name.

    Raises:
        ValueError: for a name that is not known, or a file that is missing or broken.
    """
    if name not in builtin.names():
        raise ValueError(f"no model is called {name!r}; choose one of {', '.join(builtin.names())}.")
    return builtin.load(name)
