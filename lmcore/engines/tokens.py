"""A text as an engine's own tokenizer cuts it: ids, and the bytes of each as far as the server tells them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lmcore.tokenizer.byte_alphabet import BYTE_OF_CHARACTER, to_bytes

REPLACEMENT = "\ufffd"
"""What servers write for bytes that are no whole character."""


@dataclass(frozen=True)
class ServerTokens:
    """A text in a server's tokens.

    Attributes:
        text: the text.
        ids: one id a token.
        texts: each token's text; "" for one that is only a part of a character.
        tokens: each token's bytes; None for those the server does not tell.
        groups: (first, last + 1) of the tokens that share characters, in order; most hold one token.
        shared: the text of each group.
    """

    text: str
    ids: tuple[int, ...]
    texts: tuple[str, ...]
    tokens: tuple[bytes | None, ...]
    groups: tuple[tuple[int, int], ...]
    shared: tuple[str, ...]

    @property
    def adds_up(self) -> bool:
        """Whether the tokens' texts, joined, are the text again."""
        return "".join(self.shared) == self.text

    @property
    def labels(self) -> tuple[bytes | str, ...]:
        """What to call each token: its bytes; where they are not told, which part of what it shares.

        A control token, which the text does not show, is called by its id.

        >>> server_tokens("好", [1, 2], None, ["", ""], lambda ids: "好" if len(ids) == 2 else "").labels
        ('⟨好·1/2⟩', '⟨好·2/2⟩')
        """
        labels: list[bytes | str] = []
        for (first, end), shared in zip(self.groups, self.shared, strict=True):
            for number, (token, token_id) in enumerate(
                zip(self.tokens[first:end], self.ids[first:end], strict=True), 1
            ):
                part = f"⟨{shared}·{number}/{end - first}⟩" if shared else f"⟨{token_id}⟩"
                labels.append(token if token is not None else part)
        return tuple(labels)


def is_part(text: str) -> bool:
    """Whether a token's text, as a server writes it alone, is no whole character."""
    return not text or REPLACEMENT in text


def server_tokens(
    text: str,
    ids: Sequence[int],
    written: Sequence[str] | None,
    alone: Sequence[str],
    together: Callable[[Sequence[int]], str],
) -> ServerTokens:
    """Put together what a server tells of a text's tokens.

    Args:
        text: the text.
        ids: its ids.
        written: the tokens as the tokenizer's file writes them, where the server tells that.
        alone: the text of each token by itself; "" where it is none.
        together: gives the text of several tokens in a row, "" where it is none.

    >>> pieces = {(1, 2): "好", (7,): "a"}
    >>> found = server_tokens("a好", [7, 1, 2], None, ["a", "", ""], lambda ids: pieces.get(tuple(ids), ""))
    >>> found.groups, found.shared, found.tokens
    (((0, 1), (1, 3)), ('a', '好'), (b'a', None, None))

    A token that adds nothing to the text is a control token, and no part of the character beside it:

    >>> server_tokens("好", [9, 1, 2], None, ["", "", ""], lambda ids: "好" if {1, 2} <= set(ids) else "").groups
    ((0, 1), (1, 3))
    """
    tokens = _bytes(text, written)
    groups: list[tuple[int, int]] = []
    shared: list[str] = []

    def close(end: int, group: str) -> None:
        groups.append((groups[-1][1] if groups else 0, end))
        shared.append(group)

    first = 0  # of the tokens that are no whole character so far
    for index, token in enumerate(alone):
        if is_part(token):
            group = together(ids[first : index + 1]) if index > first else token
            if is_part(group):
                continue  # the character goes on, if it is one
            while together(ids[first + 1 : index + 1]) == group:  # without this token it is the same
                first += 1
                close(first, "")
            close(index + 1, group)
        else:
            for end in range(first + 1, index + 1):  # parts of a character are not followed by a whole one
                close(end, alone[end - 1])
            close(index + 1, token)
        first = index + 1
    for end in range(first + 1, len(ids) + 1):
        close(end, alone[end - 1])
    texts = tuple("" if is_part(token) else token for token in alone)
    if tokens is None:
        tokens = [each.encode("utf-8", "surrogatepass") if each else None for each in texts]
    return ServerTokens(text, tuple(ids), texts, tuple(tokens), tuple(groups), tuple(shared))


def _bytes(text: str, written: Sequence[str] | None) -> list[bytes | None] | None:
    """Each token's bytes, when the file writes them in the byte-level alphabet: they must be the text's again."""
    if written is None or not all(character in BYTE_OF_CHARACTER for token in written for character in token):
        return None
    tokens: list[bytes | None] = [to_bytes(token) for token in written]
    joined = b"".join(token for token in tokens if token is not None)
    # A token in front of the text, where there is one, is no part of it.
    return tokens if joined.endswith(text.encode("utf-8", "surrogatepass")) else None
