"""A file that was cut into parts, read as if it were whole."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path


class JoinedFile:
    """Bytes at any offset of a file, or of the parts it was cut into; nothing is written anywhere.

    Args:
        parts: the parts in order; a whole file is one part.

    Raises:
        ValueError: for a part that is missing or unreadable, naming it.
    """

    def __init__(self, parts: Sequence[Path]) -> None:
        self._parts: list[tuple[int, int, Path]] = []
        start = 0
        for path in parts:
            try:
                size = path.stat().st_size
            except OSError as error:
                raise ValueError(f"{path.name} cannot be read: {error.strerror}.") from None
            self._parts.append((start, start + size, path))
            start += size
        self.size = start

    def read_at(self, offset: int, length: int) -> bytes:
        """Return exactly `length` bytes from `offset` on.

        Raises:
            ValueError: when the file ends before that, or can no longer be read.
        """
        pieces = []
        for start, stop, path in self._parts:
            if start < offset + length and offset < stop:
                first, last = max(offset, start), min(offset + length, stop)
                try:
                    with path.open("rb", buffering=0) as file:
                        file.seek(first - start)
                        pieces.append(_exactly(file.read, last - first))
                except OSError as error:
                    raise ValueError(f"{path.name} cannot be read: {error.strerror}.") from None
        data = b"".join(pieces)
        if len(data) != length:
            raise ValueError(f"{self._parts[0][2].name} is cut short: it has no {length:,} bytes at byte {offset:,}.")
        return data

    def sha256(self, said: Callable[[float], None] = lambda share: None) -> str:
        """Return the SHA-256 of the whole as hex digits; `said` is told the share that is done, in [0, 1]."""
        digest = hashlib.sha256()
        for offset in range(0, self.size, 1 << 23):
            digest.update(self.read_at(offset, min(1 << 23, self.size - offset)))
            said(offset / self.size)
        return digest.hexdigest()


def _exactly(read: Callable[[int], bytes], length: int) -> bytes:
    """Read until `length` bytes are there or the file ends: one read may give fewer."""
    pieces = []
    while length and (piece := read(length)):
        pieces.append(piece)
        length -= len(piece)
    return b"".join(pieces)
