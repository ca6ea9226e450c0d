"""What an engine says may follow a text: its most probable tokens, as many as it returns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lmcore.distribution.partial import PartialDistribution
from lmcore.engines.errors import EngineError

_IMPOSSIBLE = -9999.0  # what servers write for minus infinity where JSON has none
_BY_ID = "token_id:"  # how vLLM names a token by its id, when asked to


@dataclass(frozen=True)
class TopToken:
    """One token that may follow.

    Attributes:
        log_prob: the natural logarithm of its probability.
        rank: its rank, from 1.
        token_id: its id; None where the server names tokens by their text alone.
        text: its text as the server writes it; "" while only the id is known, or where it is no whole character.
    """

    log_prob: float
    rank: int
    token_id: int | None = None
    text: str = ""

    @property
    def name(self) -> int | str:
        """What tells it from others: its id, or else its text."""
        return self.text if self.token_id is None else self.token_id


@dataclass(frozen=True, slots=True)
class TopTokens:
    """The most probable tokens after a text, the most probable first.

    Kept as columns: those of all tokens of all runs stay in memory, and Python's garbage collector stops the whole
    server while it walks objects, which tuples of plain numbers are not among.

    Attributes:
        log_probs: the natural logarithms of their probabilities.
        token_ids: their ids; None where the server names tokens by their text alone.
        texts: their texts, see `TopToken`.
        asked: how many were asked for.
        merged: how many of these are missing because another one of the same text stands in their place.
        impossible: how many of these are left out because they cannot be drawn; then no token that is not told can.
    """

    log_probs: tuple[float, ...]
    token_ids: tuple[int | None, ...]
    texts: tuple[str, ...]
    asked: int
    merged: int = 0
    impossible: int = 0

    def __len__(self) -> int:
        return len(self.log_probs)

    @property
    def best(self) -> tuple[TopToken, ...]:
        """The tokens, one by one."""
        return tuple(map(TopToken, self.log_probs, range(1, len(self) + 1), self.token_ids, self.texts))

    def rank_of(self, text: str, token_id: int | None = None) -> int | None:
        """Return the rank of a token, named by its id or else by its text; None when it is none of these."""
        column, name = (self.texts, text) if token_id is None else (self.token_ids, token_id)
        return column.index(name) + 1 if name in column else None

    def by_id(self, vocab_size: int) -> Tensor:
        """Return the log-probabilities [vocab_size] by id, float32; -inf for those not told."""
        found = torch.full((vocab_size,), -torch.inf)
        found[torch.tensor(self.token_ids)] = torch.tensor(self.log_probs)
        return found

    def partial(self, vocab_size: int) -> PartialDistribution:
        """Return what follows from them about the whole distribution.

        Raises:
            ValueError: when some fell together, so that the rest are not known to be less probable.
        """
        if self.merged:
            raise ValueError(f"{self.merged} of the {self.asked} tokens asked for fell together with others.")
        size = len(self) if self.impossible else vocab_size
        return PartialDistribution(torch.tensor(self.log_probs, dtype=torch.float64), size)


def top_tokens(given: Mapping[str, float], asked: int, drawn: str | None = None) -> TopTokens:
    """Read the tokens of one place as the OpenAI completions interface gives them: name -> log-probability.

    A token named by its text hides others with the same text: bytes that are no whole characters are often all "".
    How many fell together follows from how many are missing.

    Args:
        given: the log-probabilities by name.
        asked: how many most probable ones were asked for; the token that came may stand beside them.
        drawn: the name of the token that came, where it need not be one of those.

    >>> found = top_tokens({"token_id:7": -0.5, "token_id:3": -2.0}, asked=1)
    >>> [(each.token_id, each.rank) for each in found.best], found.merged
    ([(7, 1)], 0)
    >>> top_tokens({" a": -0.5, "": -2.0}, asked=5).merged
    3
    """
    names = sorted(given, key=given.__getitem__, reverse=True)
    by_text = any(id_of(name) is None for name in names)
    if by_text and drawn is not None and names and names[-1] == drawn and len(names) <= asked:
        names.pop()  # it may be there only because it came, in the place of one that fell together
    names = names[:asked]
    merged = max(asked - len(names), 0) if by_text else 0
    told = len(names)
    names = [name for name in names if given[name] > -math.inf]
    return TopTokens(
        tuple(float(given[name]) for name in names),
        tuple(None if by_text else int(name.removeprefix(_BY_ID)) for name in names),
        tuple(name if by_text else "" for name in names),
        asked,
        merged,
        told - len(names),
    )


def id_of(name: str) -> int | None:
    """Return the id in a token's name, None when it is a text.

    >>> id_of("token_id:17"), id_of(" the")
    (17, None)
    """
    number = name.removeprefix(_BY_ID)
    return int(number) if number != name and number.isdecimal() and len(number) < 10 else None


def choice_of(answer: Any, engine: str) -> Mapping[str, Any]:
    """Return the one completion in an answer.

    Raises:
        EngineError: when it is not built like one.
    """
    try:
        choice = answer["choices"][0]
        if isinstance(choice, dict) and isinstance(choice.get("text", ""), str):
            return choice
    except (TypeError, KeyError, IndexError):
        pass
    raise EngineError("unreadable", f"{engine}: its answer is not a completion.")


def log_probs_of(choice: Mapping[str, Any], engine: str) -> Mapping[str, Sequence[Any]]:
    """Return a completion's log-probabilities: "tokens", "token_logprobs" and "top_logprobs", equally long.

    Raises:
        EngineError: when there are none, or they are built otherwise.
    """
    found = choice.get("logprobs")
    names = ("tokens", "token_logprobs", "top_logprobs")
    if not isinstance(found, dict) or not all(isinstance(found.get(name), list) for name in names):
        raise EngineError("no log-probabilities", f"{engine}: its answer holds no log-probabilities.")
    if len({len(found[name]) for name in names}) != 1:
        raise EngineError("unreadable", f"{engine}: its log-probabilities do not fit its tokens.")
    for place in found["top_logprobs"]:
        if place is not None and not (
            isinstance(place, dict) and all(isinstance(value, (int, float)) for value in place.values())
        ):
            raise EngineError("unreadable", f"{engine}: its log-probabilities are no numbers.")
    return {
        **found,
        "token_logprobs": [_possible(value) for value in found["token_logprobs"]],
        "top_logprobs": [
            None if place is None else {name: _possible(value) for name, value in place.items()}
            for place in found["top_logprobs"]
        ],
    }


def _possible(log_prob: Any) -> Any:
    """Return a log-probability, minus infinity where a server writes a large number for it."""
    if not isinstance(log_prob, (int, float)):
        return log_prob
    return -math.inf if log_prob <= _IMPOSSIBLE else min(log_prob, 1.0)
