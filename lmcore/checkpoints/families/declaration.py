"""What a family's declaration says, and the one reader of all declarations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from lmcore.checkpoints.fields import MOST_LAYERS, Fields
from lmcore.checkpoints.names import Names
from lmcore.config import Activation, ModelConfig

Reader = Callable[[Fields], Any]
"""Reads one field of `ModelConfig` from a config.json."""

Rule = Callable[[Fields, Mapping[str, Any]], dict[str, Any]]
"""Reads what several fields say together, given what was read before."""

ACTIVATIONS: Mapping[str, Activation] = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}
"""The words of config files for an activation -> ours."""


@dataclass(frozen=True)
class Family:
    """The files of one family in Hugging Face's layout.

    Attributes:
        names: where each tensor lies.
        said: field of `ModelConfig` -> how config.json says it.
        always: fields of `ModelConfig` that no file says: they are the family's.
        rules: what several fields of the file say together.
        required: field of config.json -> the only values it may have.
        left_out: field -> its value where the file does not name it.
        unset: field -> its value where the file does not name it, or says null.
        tied: whether head and embedding are one matrix where the file does not say.
        inner: the table with the language model's fields, in files of models that see pictures too.
        harmless: fields that change no number.
    """

    names: Names
    said: Mapping[str, Reader]
    always: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    required: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    left_out: Mapping[str, Any] = field(default_factory=dict)
    unset: Mapping[str, Any] = field(default_factory=dict)
    tied: bool = False
    inner: str | None = None
    harmless: tuple[str, ...] = ()

    def config_from(self, fields: Fields) -> ModelConfig:
        """Translate the fields of a config.json.

        Raises:
            ValueError: for a field or value that is not understood, naming it.
        """
        outer = fields
        if self.inner is not None and fields.get(self.inner):
            fields = fields.within(self.inner)
            fields.get("tie_word_embeddings")  # the head is the outer model's, and so is the switch
        fields.fill(self.unset, null=True)
        fields.fill(self.left_out)
        for name, values in self.required.items():
            fields.require(name, *values)
        read = {ours: reader(fields) for ours, reader in self.said.items()}
        for rule in self.rules:
            read |= rule(fields, read)
        return ModelConfig(**read, **self.always, tie_embeddings=outer.switch("tie_word_embeddings", self.tied))

    def weights_from(self, tensors: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
        """Return tensors of the family under our names."""
        return self.names.rename(tensors, config)


def whole(name: str, default: int | None = None, newer: str | None = None) -> Reader:
    """Read a whole number of at least 1, by its newer name where the file has that."""
    return lambda fields: fields.whole(name, default if newer is None else fields.whole(newer, default))


def layers(name: str) -> Reader:
    """Read the number of blocks."""
    return lambda fields: fields.whole(name, most=MOST_LAYERS)


def optional_whole(name: str) -> Reader:
    """Read such a number, or None where the field is absent."""
    return lambda fields: fields.optional_whole(name)


def real(name: str, default: float | None = None) -> Reader:
    """Read a number above 0."""
    return lambda fields: fields.real(name, default)


def optional_real(name: str) -> Reader:
    """Read such a number, or None where the field is absent."""
    return lambda fields: None if fields.get(name) is None else fields.real(name)


def switch(name: str, default: bool = False) -> Reader:
    """Read true or false."""
    return lambda fields: fields.switch(name, default)


def activation(*names: str, default: str = "silu") -> Reader:
    """Read an activation, by the first of these fields that is there; the others must agree."""

    def read(fields: Fields) -> Activation:
        given = [fields.one_of(name, ACTIVATIONS, default) for name in names if fields.get(name) is not None]
        if len(set(given)) > 1:
            raise ValueError(f"{' and '.join(names)} name different activations, {' and '.join(given)}.")
        return given[0] if given else ACTIVATIONS[default]

    return read


SIZES: Mapping[str, Reader] = {
    "vocab_size": whole("vocab_size"),
    "d_model": whole("hidden_size"),
    "n_layers": layers("num_hidden_layers"),
    "n_heads": whole("num_attention_heads"),
    "n_kv_heads": optional_whole("num_key_value_heads"),
    "d_head": optional_whole("head_dim"),
    "d_mlp": whole("intermediate_size"),
    "context_length": whole("max_position_embeddings"),
    "norm_eps": real("rms_norm_eps", 1e-6),
    "activation": activation("hidden_act"),
}
"""What LLaMA's fields say, and those of most families after it."""
