"""What became of a text: the places where two texts differ."""

from __future__ import annotations

from difflib import SequenceMatcher


def differences(before: str, after: str) -> list[tuple[str, str]]:
    """Return the parts that differ, in order: what stood there, and what stands there now; "" is nothing.

    Meant for a part of a text that one looks at: the time grows with the square of its length.

    >>> differences("Café ok", "cafe ok!")
    [('C', 'c'), ('é', 'e'), ('', '!')]
    """
    steps = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [(before[a:b], after[c:d]) for kind, a, b, c, d in steps if kind != "equal"]
