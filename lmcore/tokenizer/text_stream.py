"""Text from tokens that arrive one at a time, a token being free to end in the middle of a character."""

import codecs


class TextStream:
    """Joins tokens to text, holding back the bytes of an unfinished character.

    Everything pushed and then finished equals the joined bytes decoded at once, with U+FFFD for what is not UTF-8.

    >>> stream = TextStream()
    >>> stream.push(b"a\\xe5\\xa5"), stream.pending, stream.push(b"\\xbd!")
    ('a', b'\\xe5\\xa5', '好!')
    """

    def __init__(self) -> None:
        """Start an empty stream."""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token: bytes) -> str:
        """Take the next token's bytes; return the characters that are now whole."""
        return self._decoder.decode(token)

    @property
    def pending(self) -> bytes:
        """The bytes held back: the beginning of a character, at most 3 bytes."""
        return self._decoder.getstate()[0]

    def finish(self) -> str:
        """End the stream: what is pending comes out as U+FFFD; the stream is then empty and can be used again."""
        rest = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return rest
