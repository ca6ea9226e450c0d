"""A published model's config, with the parts that ModelConfig has no field for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lmcore.config import ModelConfig

Group = Literal["embedding", "position", "attention", "mlp", "norm", "head", "other"]
Architecture = Literal["decoder", "encoder", "encoder-decoder"]


@dataclass(frozen=True)
class Part:
    """A tensor, or one tensor a layer, named and sized by a product of config fields.

    `tied_to` names the part whose storage this one shares when the embeddings are tied.
    """

    name: str
    group: Group
    symbols: str
    tied_to: str | None = None


@dataclass(frozen=True, kw_only=True)
class PublishedConfig(ModelConfig):
    """The config of a published model, where its figures come from, and what ModelConfig cannot say of it.

    Attributes:
        title: the model's name as its authors write it.
        source: where the sizes are stated.
        tie_source: where it is stated, or shown in code, whether the output matrix is the embedding.
        architecture: "decoder" for a causal language model. In the others `n_layers` counts the layers
            of the stack that the other fields describe: BERT's encoder, or the decoder of two stacks.
        n_encoder_layers: layers of the encoder beside a decoder.
        extra_parts: tensors beyond those that ModelConfig describes.
        absent_parts: names of parts that ModelConfig implies and this model does not have.
    """

    title: str
    source: str
    tie_source: str
    architecture: Architecture = "decoder"
    n_encoder_layers: int = 0
    extra_parts: tuple[Part, ...] = ()
    absent_parts: frozenset[str] = frozenset()


@dataclass(frozen=True)
class LayerKind:
    """Layers that see equally far: a suffix for row names, the symbol that counts them, and their window."""

    suffix: str
    symbol: str
    window: int | None


def layer_kinds(config: ModelConfig) -> tuple[LayerKind, ...]:
    """Return the kinds of attention layer of a causal decoder.

    Raises:
        ValueError: for a published model that is not a causal decoder, and so generates nothing or
            has a second stack that its config does not describe.
    """
    if isinstance(config, PublishedConfig) and config.architecture != "decoder":
        raise ValueError(
            f"{config.title} has architecture = {config.architecture!r}; compute and KV cache are counted for "
            "architecture = 'decoder' only. Its parameters can be counted."
        )
    if config.local_layers:
        everywhere = LayerKind(" (global)", "n_global_layers", None)
        return everywhere, LayerKind(" (local)", "n_local_layers", config.sliding_window)
    return (LayerKind("", "n_layers", None),)


def require_positions(config: ModelConfig, n_positions: int) -> None:
    """Refuse more positions than the model is made for.

    Raises:
        ValueError: naming the number of positions and context_length.
    """
    if n_positions > config.context_length:
        raise ValueError(
            f"{n_positions} positions are more than context_length = {config.context_length}; use fewer tokens."
        )
