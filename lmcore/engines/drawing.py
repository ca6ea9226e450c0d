"""What a server draws: tokens as they come, each with what it was drawn from, and the settings it is told."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from lmcore.engines.top_tokens import TopTokens, id_of, log_probs_of, top_tokens


@dataclass(frozen=True)
class Sampler:
    """The settings a server draws with. Every one is sent, so that no default of the server's is at work unseen.

    Attributes:
        temperature: 0 is greedy.
        top_k: 0 is off.
        top_p: 1 is off.
        seed: of the server's own generator.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def as_sent(self, fields: Collection[str] | None) -> dict[str, Any]:
        """Return the settings as a request has them, and what else the server would reshape by, turned off.

        Args:
            fields: the settings its interface names; None when it does not say, and is told the usual ones only.

        >>> Sampler(top_k=3).as_sent(None)
        {'temperature': 1.0, 'top_p': 1.0, 'seed': 0}
        """
        neutral = {
            "top_k": self.top_k,
            "min_p": 0.0,
            "repetition_penalty": 1.0,
            "repeat_penalty": 1.0,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
        }
        sent = {name: value for name, value in neutral.items() if fields is not None and name in fields}
        return {"temperature": self.temperature, "top_p": self.top_p, "seed": self.seed, **sent}


@dataclass(frozen=True, slots=True)
class DrawnToken:
    """One token that a server drew.

    Attributes:
        text: what it adds to the text; "" while a character is not whole.
        token_id: its id; None where the server does not tell it.
        log_prob: ln of its probability under the model itself; None where the server does not tell it.
        among: the most probable tokens at its place.
    """

    text: str
    token_id: int | None
    log_prob: float | None
    among: TopTokens

    @property
    def rank(self) -> int | None:
        """Its rank among the most probable ones; None when it is further down."""
        return self.among.rank_of(self.text, self.token_id)


def drawn_tokens(choice: Mapping[str, Any], n: int, engine: str) -> list[DrawnToken]:
    """Return the tokens of a completion, or of one event of a stream.

    The text of several tokens that make one character comes with the last of them.

    Raises:
        EngineError: without log-probabilities.
    """
    told = log_probs_of(choice, engine)
    text = choice.get("text", "")
    names = told["tokens"]
    whole = [name if id_of(name) is None else "" for name in names]
    if "".join(whole) != text:  # by ids, or a character in several tokens
        whole = ["" for _name in names[:-1]] + [text] if names else []
    return [
        DrawnToken(part, id_of(name), log_prob, top_tokens(place or {}, n, name))
        for part, name, log_prob, place in zip(whole, names, told["token_logprobs"], told["top_logprobs"], strict=True)
    ]
