"""The tree of messages: conversations share the messages they begin with, and part where one was answered otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pages.common.messages import Conversation

Messages = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class TreeMessage:
    """A message in the tree.

    Attributes:
        messages: the conversation up to this message, which is the last of them.
        forks: how many times the conversation parted above it.
    """

    messages: Messages
    forks: int


def common(one: Messages, other: Messages) -> int:
    """Return how many messages two conversations share at their beginning.

    >>> common(({"role": "user"}, {"role": "tool"}), ({"role": "user"}, {"role": "system"}))
    1
    """
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def is_lost(before: Messages, after: Messages) -> bool:
    """Whether an edit took away an answer: messages are fewer, and an assistant's is among those gone."""
    gone = before[common(before, after) :]
    return len(after) < len(before) and any(message.get("role") == "assistant" for message in gone)


def put(kept: Sequence[Conversation], new: Conversation) -> list[Conversation]:
    """Return conversations and another one, in the place of what it goes on from; none is the beginning of another."""
    if any(common(each.messages, new.messages) == len(new.messages) for each in kept):
        return list(kept)
    is_gone_on = [common(each.messages, new.messages) == len(each.messages) for each in kept]
    others = [each for each, gone_on in zip(kept, is_gone_on, strict=True) if not gone_on]
    place = is_gone_on.index(True) if True in is_gone_on else len(others)
    return [*others[:place], new, *others[place:]]


def places(conversations: Sequence[Messages]) -> Iterator[TreeMessage]:
    """Yield every message once, those of a branch together, what came first before what came later."""
    yield from _below((), list(conversations), 0)


def _below(path: Messages, conversations: list[Messages], forks: int) -> Iterator[TreeMessage]:
    while True:  # a loop along a branch: conversations may be longer than Python's stack is deep
        groups: list[tuple[Mapping[str, Any], list[Messages]]] = []
        for conversation in (each for each in conversations if len(each) > len(path)):
            message = conversation[len(path)]
            same = next((members for first, members in groups if first == message), None)
            if same is None:
                groups.append((message, [conversation]))
            else:
                same.append(conversation)
        if len(groups) != 1:
            break
        ((message, conversations),) = groups
        path = (*path, message)
        yield TreeMessage(path, forks)
    for message, members in groups:
        yield TreeMessage((*path, message), forks + 1)
        yield from _below((*path, message), members, forks + 1)
