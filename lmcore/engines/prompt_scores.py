"""How a server foresaw each token of a prompt, in the three ways in which servers tell it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmcore.engines.errors import EngineError
from lmcore.engines.top_tokens import TopToken, TopTokens, top_tokens


@dataclass(frozen=True)
class PromptToken:
    """One token of a prompt and what was foreseen at its place.

    Attributes:
        text: its text as the server writes it there; "" where it is none.
        token_id: its id, where the server tells it.
        log_prob: ln of the probability it was foreseen with; None for the first token, and where it is not told.
        rank: its rank, where it is told.
        foreseen: the most probable tokens at its place; None where nothing is told.
    """

    text: str
    token_id: int | None
    log_prob: float | None
    rank: int | None
    foreseen: TopTokens | None


def with_ids(given: Any, engine: str) -> tuple[PromptToken, ...]:
    """Read vLLM's `prompt_logprobs`: at each place id -> log-probability, rank and text; the token's own comes first.

    Raises:
        EngineError: when it is built otherwise.
    """
    try:
        return tuple(_with_id(place) for place in given)
    except (TypeError, LookupError, ValueError, ArithmeticError, StopIteration, AttributeError):
        raise EngineError("unreadable", f"{engine}: its scores of the prompt are not built as expected.") from None


def _with_id(place: Mapping[str, Mapping[str, Any]] | None) -> PromptToken:
    if place is None:
        return PromptToken("", None, None, None, None)
    found = [
        TopToken(float(told["logprob"]), int(told["rank"]), int(token_id), str(told.get("decoded_token") or ""))
        for token_id, told in place.items()
    ]
    own = found[0]
    ranked = sorted(found, key=lambda each: each.rank)
    # The token's own stands beside the most probable ones when it is none of them.
    best = [each for number, each in enumerate(ranked, start=1) if each.rank == number]
    foreseen = TopTokens(
        tuple(each.log_prob for each in best),
        tuple(each.token_id for each in best),
        tuple(each.text for each in best),
        len(best),
    )
    return PromptToken(own.text, own.token_id, own.log_prob, own.rank, foreseen)


def in_order(told: Mapping[str, Sequence[Any]], count: int, n: int) -> tuple[PromptToken, ...]:
    """Read log-probabilities with `echo`: the prompt's tokens, then what follows; at each place what foresaw it.

    Args:
        told: "tokens", "token_logprobs" and "top_logprobs".
        count: how many of them are the prompt's.
        n: how many most probable ones were asked for.
    """
    found = []
    for name, log_prob, place in _rows(told, count):
        foreseen = None if place is None else top_tokens(place, n, name)
        found.append(PromptToken(name, None, log_prob, _rank(foreseen, name), foreseen))
    return tuple(found)


def one_place_late(told: Mapping[str, Sequence[Any]], count: int, n: int) -> tuple[PromptToken, ...]:
    """Read log-probabilities with `echo` from a server that gives at each place what is foreseen after it.

    The number it gives for a token itself is then the probability that it comes once more; the right one is in the
    place before, when the token is among the most probable there.
    """
    found: list[PromptToken] = []
    before: TopTokens | None = None
    for name, _log_prob, place in _rows(told, count):
        own = _own(before, name)
        found.append(PromptToken(name, None, own.log_prob if own else None, own.rank if own else None, before))
        before = None if place is None else top_tokens(place, n, name)
    return tuple(found)


def _own(before: TopTokens | None, name: str) -> TopToken | None:
    """The token among those foreseen; None where its text may stand for another one, too."""
    if before is None or before.merged or not name:
        return None
    return next((each for each in before.best if each.text == name), None)


def _rows(told: Mapping[str, Sequence[Any]], count: int) -> list[tuple[Any, Any, Any]]:
    names = ("tokens", "token_logprobs", "top_logprobs")
    return list(zip(*(told[name][:count] for name in names), strict=True))


def _rank(foreseen: TopTokens | None, name: str) -> int | None:
    return None if foreseen is None else foreseen.rank_of(name)
