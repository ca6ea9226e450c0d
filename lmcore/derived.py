"""What a trace need not keep: tensors as large as the square of the text that follow from others in one step."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from lmcore.scores import mask, pattern

FOLLOWS: dict[str, tuple[Callable[..., Tensor], tuple[str, ...]]] = {
    "attn.masked_scores": (mask, ("attn.scores", "attn.visible")),
    "attn.pattern": (pattern, ("attn.masked_scores",)),
}
"""Name within a block -> the model's step that gives it, and the names of what the step is given."""


def derivation(name: str) -> tuple[Callable[..., Tensor], tuple[str, ...]] | None:
    """Return the step that gives a tensor and the full names of what it is given, or None if it is no such tensor.

    >>> derivation("blocks.3.attn.pattern")[1]
    ('blocks.3.attn.masked_scores',)
    """
    within = name.split(".", 2)[-1]
    if within not in FOLLOWS:
        return None
    step, sources = FOLLOWS[within]
    return step, tuple(name.removesuffix(within) + source for source in sources)
