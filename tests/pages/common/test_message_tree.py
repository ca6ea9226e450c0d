"""Conversations that part: which are kept, and the order in which their messages are told."""

from __future__ import annotations

from pages.common.message_tree import common, is_lost, places, put
from pages.common.messages import Conversation


def said(*texts: str):
    roles = ("user", "assistant")
    return tuple({"role": roles[n % 2], "content": text} for n, text in enumerate(texts))


def test_a_conversation_that_goes_on_takes_the_place_of_its_beginning() -> None:
    kept = [Conversation(said("a", "b")), Conversation(said("a", "c"))]
    longer = Conversation(said("a", "b", "d"))
    assert put(kept, longer) == [longer, kept[1]]
    assert put(kept, Conversation(said("a"))) == kept  # going back is no branch of its own
    assert put(kept, kept[1]) == kept
    other = Conversation(said("a", "b2"))
    assert put(kept, other) == [*kept, other]


def test_only_an_answer_that_is_gone_makes_a_branch_of_an_edit() -> None:
    assert is_lost(said("a", "b"), said("a"))
    assert not is_lost(said("a", "b", "c"), said("a", "b"))
    assert not is_lost(said("a", "b"), said("a", "b", "c"))
    assert not is_lost(said("typing"), said("typed"))
    assert common(said("a", "b"), said("a", "c")) == 1


def test_every_message_is_told_once_and_branches_stand_together() -> None:
    conversations = [said("a", "b", "c"), said("a", "x"), said("a", "b", "d", "e")]
    rows = [(place.messages[-1]["content"], len(place.messages), place.forks) for place in places(conversations)]
    assert rows == [("a", 1, 0), ("b", 2, 1), ("c", 3, 2), ("d", 3, 2), ("e", 4, 2), ("x", 2, 1)]
    long = said(*map(str, range(5000)))
    assert sum(1 for _place in places([long])) == 5000
