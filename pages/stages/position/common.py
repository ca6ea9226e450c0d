"""What the views share: which model shows an encoding, and the prompt's tokens for it."""

from __future__ import annotations

import lmcore
from pages.common import session
from pages.common.text import _


def built_in_models() -> dict[str, str]:
    """Return the built-in models that differ only in their position encoding, by encoding."""
    configs = lmcore.builtin.configs()
    dense = {name: config for name, config in configs.items() if config.n_experts is None}
    return {config.position_encoding: name for name, config in dense.items() if config.tie_embeddings}


def encoding_titles() -> dict[str, str]:
    """Return what the position encodings are called on screen."""
    return {
        "rope": "RoPE",
        "learned": _("Learned"),
        "sinusoidal": _("Sinusoidal"),
        "relative": _("Relative bias"),
        "alibi": "ALiBi",
        "none": _("None"),
    }


def model_with(encoding: str) -> str:
    """Return the chosen model's name if it has this position encoding, else that of a built-in model with it."""
    if session.language_model().config.position_encoding == encoding:
        return session.model_name()
    return built_in_models()[encoding]


def steps_trained(name: str) -> int | None:
    """Return for how many steps a built-in model was trained, or None when that is not on record."""
    on_record = lmcore.builtin.BuiltinModel(name).record_path.exists()
    return lmcore.builtin.record(name)["training"]["steps"] if on_record else None


def trained_length(name: str | None = None) -> int:
    """Return how many positions a model saw in training, before any scaling of RoPE; without a name, a built-in one.

    Those saw as many as the learned table has rows; of a file, its own numbers say it.
    """
    if name is not None and name not in lmcore.builtin.names():
        config = session.language_model(name).config
        scaling = config.rope_scaling
        by_parts = scaling is not None and scaling.kind in ("yarn", "llama3")
        return scaling.original_context_length if scaling and by_parts else config.context_length
    return lmcore.builtin.configs()[built_in_models()["learned"]].context_length


def tokens_of(name: str) -> tuple[list[bytes], list[int]]:
    """Return the prompt in tokens of a model, as many as its context holds; none for an empty prompt."""
    found = session.encoding(session.beginning(), name)
    limit = session.language_model(name).config.context_length
    return found.tokens[:limit], found.ids[:limit]


def unrotated(layer: int) -> str:
    """Return what is said of a block whose queries and keys RoPE does not turn."""
    return _("RoPE does not turn queries and keys in block {layer} of this model. Choose another block.").format(
        layer=layer
    )
