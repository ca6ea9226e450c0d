"""What a model's files say of it beside its config: where it came from, how it is stored, what was not understood."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class StorageType:
    """The numbers of one storage type: how many weights, in how many bytes."""

    weights: int
    nbytes: int

    @property
    def bits_per_weight(self) -> float:
        """Bits of the file for each weight.

        >>> StorageType(weights=32, nbytes=18).bits_per_weight
        4.5
        """
        return 8 * self.nbytes / self.weights


@dataclass(frozen=True)
class ModelCard:
    """What was read from a model's files.

    Attributes:
        title: the model's name in its own file, "" where it has none.
        family: the file's word for the kind of model.
        filename: the weights' file, or the first of several.
        licence: as the file says it.
        source: where the model comes from, as the file says it: an address, or a name.
        storage: storage type (Q4_K, BF16, ...) -> its share of the tensors.
        unknown_fields: fields of the config whose meaning nobody knows; they were let through.
        without_row: tokens of the tokenizer for which the model's table has no row -> their ids.
        sampling: how the files say the model should be sampled, by setting, for `lmcore.preset(engine, model=...)`.
        sampling_file: where they say so, "generation_config.json" or "general.sampling"; "" where they don't.
        default_splitting: the file does not say how text is cut into words, so ids may not be those of its training.
    """

    title: str = ""
    family: str = ""
    filename: str = ""
    licence: str = ""
    source: str = ""
    storage: Mapping[str, StorageType] = field(default_factory=dict)
    unknown_fields: Mapping[str, Any] = field(default_factory=dict)
    without_row: Mapping[str, int] = field(default_factory=dict)
    default_splitting: bool = False
    sampling: Mapping[str, float] = field(default_factory=dict)
    sampling_file: str = ""
