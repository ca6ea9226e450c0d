"""What can go wrong with a model that runs elsewhere: a kind, one sentence, and never a key or an address."""

from __future__ import annotations

import re
from typing import Literal

Kind = Literal[
    "no key",
    "unreachable",
    "slow",
    "key refused",
    "no such model",
    "busy",
    "failing",
    "broken off",
    "context too long",
    "unreadable",
    "no log-probabilities",
    "model changed",
    "refused",
]

_LONGEST = 300
_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)


class EngineError(Exception):
    """A request that an engine did not answer as it should.

    Args:
        kind: what happened, for those who say it in other words.
        sentence: what happened, in one sentence.
        detail: the server's own words, already without secrets; "" for none.
    """

    def __init__(self, kind: Kind, sentence: str, detail: str = "") -> None:
        super().__init__(f"{sentence} The server says: {detail}" if detail else sentence)
        self.kind: Kind = kind
        self.sentence = sentence
        self.detail = detail


def without_secrets(text: str, key: str) -> str:
    """Return a server's words without the key, in case it repeats it, and without addresses; long ones are cut.

    >>> without_secrets("bad key sk-123 for http://10.0.0.7:8000/v1", "sk-123")
    'bad key … for …'
    """
    # The key first: it may be part of an address.
    found = _ADDRESS.sub("…", text.replace(key, "…") if key else text)
    found = " ".join(found.split())
    return found if len(found) <= _LONGEST else found[:_LONGEST] + " …"
