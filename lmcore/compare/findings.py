"""Where two runs part first: one finding a stage, in the order in which a text becomes tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

import torch

from lmcore.compare.alignment import first_difference, same_vocabulary
from lmcore.compare.side import Drawn, Run
from lmcore.sampling import Note, Rules, SamplingSettings, reshape
from lmcore.sampling.registry import get

__all__ = ["NOTES", "STAGES", "Finding", "Stage", "ids", "settings", "settings_differ", "text"]

Stage = Literal["text", "ids", "logits", "settings", "draw"]
STAGES: tuple[Stage, ...] = ("text", "ids", "logits", "settings", "draw")

TEXT = "The texts differ from character {place} on: A has {a}, B has {b}."
SAME_TEXT = "Both read the same text."
NO_TEXT = "One side does not tell the text that it read."
IDS = "The ids differ from token {place} on: A has {a}, B has {b}."
FIRST_A = "The ids differ from token 0 on: A begins with {token}, which B lacks."
FIRST_B = "The ids differ from token 0 on: B begins with {token}, which A lacks."
CUTS = "The two vocabularies differ, and the text is cut differently from token {place} on: A has {a}, B has {b}."
SAME_IDS = "Both read the same {n} ids."
SAME_CUTS = "The two vocabularies differ; the text is cut into the same {n} pieces."
NO_IDS = "One side does not tell its ids."
LOGITS = (
    "The logits differ: {kl} bits of KL(A‖B) on average; at {flips} of {n} places another token is the most probable."
)
CHANCES = (
    "Over the tokens both have, the probabilities differ: {kl} bits of KL(A‖B) on average; at {flips} of {n} places "
    "another token is the most probable."
)
REPORTED = "The log-probabilities that are told differ by up to {most} nats."
SAME_LOGITS = "The logits are the same."
ROUNDING = "The logits differ by rounding alone, by at most {most} nats."
SAME_REPORTED = "The log-probabilities that are told agree to {most} nats."
NO_LOGITS = "No place tells log-probabilities on both sides."
SETTINGS = "The sampler differs, A | B: {what}."
SAME_SETTINGS = "Both draw by the same rules and settings."
NO_SETTINGS = "One side does not tell how it draws."
SEEDS = "The random numbers differ: A has seed {a}, B has seed {b}."
SEED_IDLE = "The seeds are {a} and {b}; with one candidate left at each token they change nothing."
DRAWS = "The texts part at new token {place}: A has {a}, B has {b}."
SAME_DRAWS = "The same {n} tokens came."
SAME_SEED = "Both have the same seed."
NO_DRAW = "Nothing was drawn on one side."
NOTHING = "A and B are the same in everything that was compared."
NOTES = (
    *(TEXT, SAME_TEXT, NO_TEXT, IDS, FIRST_A, FIRST_B, CUTS, SAME_IDS, SAME_CUTS, NO_IDS),
    *(LOGITS, CHANCES, REPORTED, SAME_LOGITS, ROUNDING, SAME_REPORTED, NO_LOGITS),
    *(SETTINGS, SAME_SETTINGS, NO_SETTINGS),
    *(SEEDS, SEED_IDLE, DRAWS, SAME_DRAWS, SAME_SEED, NO_DRAW, NOTHING),
)
"""Every template of a finding's sentence."""

_SHOWN = 24  # characters of a text that a sentence quotes
NOBODY = "–"  # what a sentence has in the place of a token that one side lacks

_RULES_OF = {
    **dict.fromkeys(("top_k_ties",), ("top_k",)),
    **dict.fromkeys(("top_p_boundary", "top_p_ties", "top_p_joint"), ("top_p",)),
    "top_n_sigma_divisor": ("top_n_sigma",),
    **dict.fromkeys(("typical_boundary", "typical_ties", "typical_score"), ("typical_p",)),
    "repetition_penalty_counts": ("repetition_penalty",),
    "additive_penalties_count": ("frequency_penalty", "presence_penalty"),
    **dict.fromkeys(("greedy_below", "least_temperature"), ("temperature",)),
    "boundary_ulps": ("top_p", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff", "top_a", "tfs_z"),
}
"""A rule -> the stages it concerns; those that only say what something is called, or when to refuse, are left out."""


@dataclass(frozen=True)
class Finding:
    """What a stage says of the two.

    Attributes:
        stage: which one.
        same: whether they are the same there; None where one side does not tell.
        note: a sentence with its template and values.
        place: the character or token at which they part; None where that is no place.
    """

    stage: Stage
    same: bool | None
    note: Note
    place: int | None = None


def text(a: Run, b: Run) -> Finding:
    """Compare what the two read."""
    if a.text is None or b.text is None:
        return Finding("text", None, Note(NO_TEXT))
    place = first_difference(a.text, b.text)
    if place is None:
        return Finding("text", True, Note(SAME_TEXT))
    quoted = {"a": _quoted(a.text, place), "b": _quoted(b.text, place)}
    return Finding("text", False, Note(TEXT, place=place, **quoted), place)


def same_words(a: Run, b: Run) -> bool:
    """Whether an id is the same token on both sides, as far as can be known; where a server tells ids, it is supposed
    to be, unless the tokens' bytes say otherwise."""
    if a.tokenizer is None or b.tokenizer is None:
        known = {i: token for i, token in zip(a.ids or (), a.tokens or (), strict=False)}
        return all(known.get(i, token) == token for i, token in zip(b.ids or (), b.tokens or (), strict=False))
    return same_vocabulary(a.tokenizer, b.tokenizer)


def ids(a: Run, b: Run) -> Finding:
    """Compare the tokens the two read: their ids, or their bytes where the vocabularies differ."""
    if a.ids is None or b.ids is None or a.tokens is None or b.tokens is None:
        return Finding("ids", None, Note(NO_IDS))
    by_id = same_words(a, b)
    place = first_difference(a.ids, b.ids) if by_id else first_difference(a.tokens, b.tokens)
    if place is None:
        return Finding("ids", True, Note(SAME_IDS if by_id else SAME_CUTS, n=len(a.ids)))
    for template, longer, shorter in ((FIRST_A, a, b), (FIRST_B, b, a)):
        more = len(longer.ids or ()) - len(shorter.ids or ())
        if by_id and 0 < more <= 4 and (longer.ids or ())[more:] == shorter.ids:
            return Finding("ids", False, Note(template, token=_named(longer, *range(more))), 0)
    found = {"a": _named(a, place), "b": _named(b, place)}
    return Finding("ids", False, Note(IDS if by_id else CUTS, place=place, **found), place)


def settings_differ(a: SamplingSettings, b: SamplingSettings) -> dict[str, tuple[Any, Any]]:
    """Return which settings that are at work differ: name -> A's and B's; without the seed.

    >>> settings_differ(SamplingSettings(top_k=3, seed=1), SamplingSettings(top_k=4, penalty_last_n=9, seed=2))
    {'top_k': (3, 4)}
    """
    used = [{name: dict(get(name).used(side)) for name in side.active} for side in (a, b)]
    found: dict[str, tuple[Any, Any]] = {}
    for stage in dict.fromkeys((*a.active, *b.active)):
        for each in get(stage).fields:
            left, right = (getattr(side, each.name) if stage in side.active else each.off for side in (a, b))
            if left != right:
                found[each.name] = (left, right)
    both = set(used[0]) & set(used[1])
    orders = [tuple(name for name in side.active if name in both) for side in (a, b)]
    if orders[0] != orders[1]:
        found["order"] = orders[0], orders[1]
    for rule in (each.name for each in fields(Rules)):
        left, right = getattr(a.rules, rule), getattr(b.rules, rule)
        if left != right and any(stage in used[0] or stage in used[1] for stage in _RULES_OF.get(rule, ())):
            found[rule] = (left, right)
    return found


def settings(a: Run, b: Run) -> Finding:
    """Compare how the two draw, and what ends their texts."""
    if a.settings is None or b.settings is None:
        return Finding("settings", None, Note(NO_SETTINGS))
    differ = settings_differ(a.settings, b.settings)
    ends_a, ends_b = a.ends or {}, b.ends or {}
    differ |= {name: (ends_a[name], ends_b[name]) for name in ends_a if name in ends_b and ends_a[name] != ends_b[name]}
    if not differ:
        return Finding("settings", True, Note(SAME_SETTINGS))
    what = "; ".join(f"{name} {_value(left)} | {_value(right)}" for name, (left, right) in differ.items())
    return Finding("settings", False, Note(SETTINGS, what=what))


def draw(a: Run, b: Run, came_a: tuple[Drawn, ...], came_b: tuple[Drawn, ...]) -> Finding:
    """Compare what came: the random numbers, and the tokens."""
    seeds = [side.settings.seed if side.settings else None for side in (a, b)]
    told = {"a": seeds[0], "b": seeds[1]}
    place = first_difference([each.token for each in came_a], [each.token for each in came_b])
    if seeds[0] != seeds[1]:
        if place is None and _one_candidate(a) and _one_candidate(b):
            return Finding("draw", True, Note(SEED_IDLE, **told))
        return Finding("draw", False, Note(SEEDS, **told), place)
    if not came_a or not came_b:
        return Finding("draw", True if seeds[0] is not None else None, Note(NO_DRAW if seeds[0] is None else SAME_SEED))
    if place is None:
        return Finding("draw", True, Note(SAME_DRAWS, n=len(came_a)))
    values = {"a": _came(came_a, place), "b": _came(came_b, place)}
    return Finding("draw", False, Note(DRAWS, place=place, **values), place)


def _one_candidate(run: Run) -> bool:
    """Whether the sampler leaves one token at each place, as far as anything was drawn; else at the next one."""
    if run.drawn:
        return all(each.kept == 1 for each in run.drawn)
    if run.settings is None or run.logits is None:
        return False
    with torch.inference_mode():
        return reshape(run.logits[-1], run.settings, list(run.ids or ())).candidates == 1


def _quoted(whole: str, place: int) -> str:
    part = whole[place : place + _SHOWN]
    return repr(part) + ("…" if len(whole) > place + _SHOWN else "") if part else NOBODY


def _named(run: Run, *places: int) -> str:
    """Name tokens of the prompt by their text and id."""
    found = []
    for place in places:
        if place < len(run.ids or ()):
            assert run.ids is not None and run.tokens is not None
            found.append(f"{run.tokens[place].decode(errors='backslashreplace')!r} ({run.ids[place]})")
    return " ".join(found) or NOBODY


def _came(came: tuple[Drawn, ...], place: int) -> str:
    return repr(came[place].token.decode(errors="backslashreplace")) if place < len(came) else NOBODY


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping | tuple | list) and len(value) > 6:
        return f"{len(value)} entries"
    return repr(value) if isinstance(value, str) else str(value)
