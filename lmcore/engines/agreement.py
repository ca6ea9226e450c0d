"""The same weights in two places: what an engine says may follow, held against a local model of the same weights."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from lmcore.distribution import rank
from lmcore.engines.top_tokens import TopTokens
from lmcore.tokenizer import Tokenizer


@dataclass(frozen=True)
class TokenAgreement:
    """One token, its log-probability and its rank here and there."""

    token_id: int
    token: bytes
    here: float
    there: float
    rank_here: int
    rank_there: int


@dataclass(frozen=True)
class Agreement:
    """The tokens that can be told apart, the most probable there first."""

    rows: tuple[TokenAgreement, ...]

    @property
    def worst(self) -> TokenAgreement:
        """The token on which the two differ most."""
        return max(self.rows, key=lambda row: abs(row.there - row.here))

    @property
    def largest_difference(self) -> float:
        """The largest difference of log-probabilities; 0 without tokens."""
        return abs(self.worst.there - self.worst.here) if self.rows else 0.0


def agreement(served: TopTokens, log_probs: Tensor, tokenizer: Tokenizer) -> Agreement:
    """Compare an engine's candidates with a local model's log-probabilities.

    A candidate named by text alone is the token whose bytes are that text; where there is none, it is left out.

    Args:
        served: the engine's most probable tokens.
        log_probs: the local model's, [V].
        tokenizer: the local model's.
    """
    rows = []
    for each in served.best:
        token_id = each.token_id if each.token_id is not None else id_of_text(tokenizer, each.text)
        if token_id is not None and token_id < len(log_probs):
            rows.append(
                TokenAgreement(
                    token_id,
                    tokenizer.token_bytes(token_id),
                    float(log_probs[token_id]),
                    each.log_prob,
                    rank(log_probs, token_id),
                    each.rank,
                )
            )
    return Agreement(tuple(rows))


def id_of_text(tokenizer: Tokenizer, text: str) -> int | None:
    """Return the token that is exactly this text; None where no token is."""
    ids = tokenizer.encode(text).ids if text else []
    matching = [token_id for token_id in ids if tokenizer.token_bytes(token_id) == text.encode()]
    return matching[0] if len(ids) == len(matching) == 1 else None
