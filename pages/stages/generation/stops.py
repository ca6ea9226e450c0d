"""Where a text ends: stop tokens and stop strings, as the reader and the address write them."""

from __future__ import annotations

import re

from lmcore import LanguageModel
from pages.common import conversation

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def default_ids(lm: LanguageModel) -> frozenset[int]:
    """Return the ids that end a text of this model, as its files say."""
    return frozenset(lm.end_tokens)


def ids_of_prompt(lm: LanguageModel) -> frozenset[int]:
    """Return the ids that end a text, and in a conversation the one with which the template ends a turn."""
    turn = conversation.end_of_turn(lm) if conversation.is_on() else None
    return default_ids(lm) | ({turn} if turn is not None else set())


def read_ids(text: str, vocab_size: int) -> frozenset[int]:
    """Read token ids separated by commas or spaces.

    Raises:
        ValueError: for what is no id of the vocabulary.

    >>> sorted(read_ids("3, 17 3", 100))
    [3, 17]
    """
    found = set()
    for part in re.split(r"[\s,]+", text.strip()):
        if part and not (part.isascii() and part.isdigit() and len(part) < 10 and int(part) < vocab_size):
            raise ValueError(part)
        if part:
            found.add(int(part))
    return frozenset(found)


def read_strings(text: str) -> tuple[str, ...]:
    r"""Read stop strings separated by |; \n, \t and \r are the characters they stand for, \| and \\ themselves.

    >>> read_strings(r"\n\n|END|a\|b||")
    ('\n\n', 'END', 'a|b')
    """
    found = [""]
    for escaped, plain in re.findall(r"\\(.)|(.)", text, re.DOTALL):
        if plain == "|":
            found.append("")
        else:
            found[-1] += _ESCAPES.get(escaped, escaped) or plain
    return tuple(dict.fromkeys(each for each in found if each))
