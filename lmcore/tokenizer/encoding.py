"""What encoding a text gives: ids, the bytes behind each id, and where in the text each token lies."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Encoding:
    """A text as tokens.

    Args:
        text: The text that was encoded.
        ids: One id a token, each in [0, vocab_size).
        tokens: The bytes of each token; those after the first `n_added`, joined, are the text's UTF-8 (of the
            normalised text, for the few tokenizers that normalise it). A token may be part of a character.
        offsets: For each token (start, end) in characters: `text[start:end]` are the characters the token has bytes of.
            The tokens that share a character all have that character's range.
        n_added: How many tokens at the beginning are none of the text: a <bos>, where the model expects one.
    """

    text: str
    ids: list[int]
    tokens: list[bytes]
    offsets: list[tuple[int, int]]
    n_added: int = 0

    def __len__(self) -> int:
        """The number of tokens."""
        return len(self.ids)


def utf8(text: str) -> bytes:
    """Return a text's UTF-8.

    Raises:
        TypeError: it is no text.
        ValueError: it holds a lone surrogate (half of a UTF-16 pair), which has no UTF-8.
    """
    if not isinstance(text, str):
        raise TypeError(f"a text is a str, but this is {type(text).__name__}; decode bytes first.")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"character {error.start} of the text is U+{ord(text[error.start]):04X}, half of a surrogate pair; "
            "it is no character by itself and has no UTF-8: remove it or complete the pair."
        ) from None


def character_offsets(text: str, tokens: Sequence[bytes]) -> list[tuple[int, int]]:
    """The range of characters that each token touches.

    Args:
        text: A text without lone surrogates.
        tokens: Non-empty byte strings whose concatenation is the text's UTF-8.

    Returns:
        (start, end) for each token, in characters.

    >>> character_offsets("a好", [b"a", b"\\xe5\\xa5", b"\\xbd"])
    [(0, 1), (1, 2), (1, 2)]
    """
    character_of_byte: list[int] = []
    for position, character in enumerate(text):
        character_of_byte.extend([position] * len(character.encode()))
    offsets = []
    start = 0
    for token in tokens:
        end = start + len(token)
        offsets.append((character_of_byte[start], character_of_byte[end - 1] + 1))
        start = end
    return offsets
