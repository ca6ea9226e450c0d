"""What a trace need not keep: tensors as large as the square of the text that follow from others in one step."""

from __future__ import annotations

from collections.abc import Callable, Container

from torch import Tensor

from lmcore.scores import mask, pattern

FOLLOWS: dict[str, tuple[Callable[..., Tensor], tuple[str, ...], str | None]] = {
    "attn.masked_scores": (mask, ("attn.scores", "attn.visible"), None),
    "attn.pattern": (pattern, ("attn.masked_scores",), "attn.sinks"),
}
"""Name within a block -> the model's step that gives it, the names of what the step is given, and of what it is given
last in the models that have it."""


def derivation(name: str, recorded: Container[str]) -> tuple[Callable[..., Tensor], tuple[str, ...]] | None:
    """Return the step that gives a tensor and the full names of what it is given; None if it does not follow.

    >>> derivation("blocks.3.attn.pattern", {"blocks.3.attn.masked_scores"})[1]
    ('blocks.3.attn.masked_scores',)
    """
    within = name.split(".", 2)[-1]
    if within not in FOLLOWS:
        return None
    block = name.removesuffix(within)
    step, given, last = FOLLOWS[within]
    sources = tuple(block + source for source in given)
    if not all(source in recorded for source in sources):
        return None
    return step, (*sources, block + last) if last is not None and block + last in recorded else sources
