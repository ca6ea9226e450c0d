"""Labels of tokens in pictures and tables."""

from __future__ import annotations

from collections.abc import Sequence

from pages.common.escape import visible


def token_labels(tokens: Sequence[bytes], first: int = 0) -> list[str]:
    """Return one label per token, its position and its text: the same text at two places gives two labels.

    >>> token_labels([b" the", b" the"])
    ['0:␣the', '1:␣the']
    """
    return [f"{position}:{visible(token)}" for position, token in enumerate(tokens, start=first)]


def vocabulary_label(token_id: int, token: bytes) -> str:
    """Return the label of a token of the vocabulary: its text and its id, as texts may look alike.

    >>> vocabulary_label(42, b" the")
    '␣the#42'
    """
    return f"{visible(token)}#{token_id}"
