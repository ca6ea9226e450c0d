"""DRY, "don't repeat yourself": lower what would make a repeated stretch longer, the more the longer it is."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch

from lmcore.sampling.candidates import Candidates
from lmcore.sampling.stage import Context, Edit, Field, History, Ids, Note, Range, Stage, span

if TYPE_CHECKING:
    from lmcore.sampling.settings import SamplingSettings

__all__ = ["DRY", "Match", "matches", "repeated"]

NO_MATCH = "the latest tokens repeat no earlier stretch"
REPEATS = "the latest {length} tokens came before; tokens lowered: {count}"
_LARGEST = 88.72  # the logarithm of float32's largest number: llama.cpp keeps the power below it


class Match(NamedTuple):
    """A token that would continue a repetition.

    Attributes:
        token_id: It followed the earlier stretch.
        length: How many tokens of that stretch are the latest ones too.
        place: Where the earlier stretch ended, counted from the beginning of the tokens given.
    """

    token_id: int
    length: int
    place: int


def matches(tokens: Sequence[int], allowed_length: int, breakers: Collection[int] = ()) -> list[Match]:
    """Find what followed whenever the latest tokens came before, with the longest stretch for each token.

    Args:
        tokens: The latest tokens, oldest first.
        allowed_length: Shorter stretches are left out.
        breakers: Tokens that no stretch may contain, and that are never a match.

    >>> matches([0, 4, 3, 2, 0, 1, 3, 2, 0], 2)
    [Match(token_id=1, length=3, place=4)]
    """
    newest_first = [int(token) for token in reversed(tokens)]
    n = len(newest_first)
    reach = next((place for place, token in enumerate(newest_first) if token in breakers), n)
    if n <= allowed_length or reach < allowed_length:
        return []
    longest: dict[int, Match] = {}
    for back, common in enumerate(_common_beginnings(newest_first)):
        token, length = newest_first[back - 1], min(common, reach)
        if not back or length < allowed_length or token in breakers:
            continue
        if token not in longest or length > longest[token].length:
            longest[token] = Match(token, length, n - 1 - back)
    return list(longest.values())


def _common_beginnings(items: list[int]) -> list[int]:
    """How far items[i:] is equal to items, for each i (the Z-function): linear in their number."""
    n = len(items)
    found = [n] + [0] * (n - 1)
    start = end = 0  # the stretch found that reaches furthest
    for i in range(1, n):
        size = min(end - i, found[i - start]) if i < end else 0
        while i + size < n and items[size] == items[i + size]:
            size += 1
        found[i] = size
        if i + size > end:
            start, end = i, i + size
    return found


def dry(tokens: Candidates, context: Context) -> tuple[Candidates, Note]:
    """Lower each token that continues a repetition by `multiplier * base ** (length - allowed_length)`."""
    found = repeated(context.settings, context.history)
    if not found:
        return tokens, Note(NO_MATCH)
    edit = _edit_of(found, context.settings)
    tokens.check_ids(edit.token_ids, "history")
    note = Note(REPEATS, length=max(match.length for match in found), count=len(found))
    return tokens.edited(*edit), note


def repeated(settings: SamplingSettings, history: History) -> list[Match]:
    """Return what these settings find in a history; places count from the beginning of all its tokens."""
    seen, window = history.all, settings.dry_penalty_last_n
    begin = 0 if window is None else max(len(seen) - window, 0)
    found = matches(seen[begin:], settings.dry_allowed_length, frozenset(settings.dry_sequence_breakers))
    return [match._replace(place=match.place + begin) for match in found]


def _edit_of(found: Sequence[Match], settings: SamplingSettings) -> Edit:
    most = _LARGEST / math.log(settings.dry_base) if settings.dry_base > 1 else math.inf
    ids = torch.tensor([match.token_id for match in found], dtype=torch.int64)
    powers = [settings.dry_base ** min(match.length - settings.dry_allowed_length, most) for match in found]
    return Edit(ids, "add", torch.tensor(powers, dtype=torch.float64) * -settings.dry_multiplier)


DRY = Stage(
    name="dry",
    title="DRY",
    help="Lowers tokens that would continue a repetition of earlier text, the more the longer it is.",
    kind="edit",
    formula="z - m * b ^ (L - A), where the latest L >= A tokens came before and this token followed",
    source="p-e-w 2024; llama.cpp, llama_sampler_dry",
    fields=(
        Field(name="dry_multiplier", range=Range(0), on=0.8, stops=lambda vocab_size: span(0, 5, 0.05)),
        Field(
            name="dry_base",
            title="Base of the power",
            off=1.75,
            range=Range(1),
            stops=lambda vocab_size: span(1, 4, 0.05),
        ),
        Field(
            name="dry_allowed_length",
            title="Length that is allowed",
            off=2,
            range=Range(0),
            whole=True,
            stops=lambda vocab_size: range(21),
        ),
        Field(name="dry_penalty_last_n", title="Only the latest n tokens", off=None, range=Range(0), whole=True),
        Ids(name="dry_sequence_breakers", title="Tokens that break a repetition (ids)", off=()),
    ),
    run=dry,
    needs_history=True,
    edit=lambda settings, history: _edit_of(repeated(settings, history), settings),
    notes=(NO_MATCH, REPEATS),
)
