"""What a lesson's question can be answered with: each a number or a text computed from a model and a prompt."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

import lmcore
from lmcore import History, LanguageModel, Reshaped, SamplingSettings
from lmcore.analysis.embedding.similarity import cosine as cosine_of
from lmcore.distribution import loss_nats, softmax, total_variation

Answer = float | int | str


def tokens(lm: LanguageModel, prompt: str) -> int:
    """Count the prompt's tokens."""
    return len(lm.tokenizer.encode(prompt).ids)


def likeliest(lm: LanguageModel, prompt: str) -> str:
    """Name the most probable next token."""
    return lm.tokenizer.token_bytes(int(_logits(lm, prompt).argmax())).decode("utf-8", "replace")


def probability(lm: LanguageModel, prompt: str, token: str, **settings: Any) -> float:
    """Return the probability that a token comes next, under sampling settings such as temperature=0.5."""
    return _reshaped(lm, prompt, settings).probs[_id(lm, token)].item()


def rank(lm: LanguageModel, prompt: str, token: str) -> int:
    """Return the rank of a token among all next tokens, 1 for the most probable."""
    logits = _logits(lm, prompt)
    return 1 + int((logits > logits[_id(lm, token)]).sum())


def candidates(lm: LanguageModel, prompt: str, **settings: Any) -> int:
    """Count the tokens that can still be drawn under sampling settings."""
    return _reshaped(lm, prompt, settings).candidates


def entropy(lm: LanguageModel, prompt: str, **settings: Any) -> float:
    """Return the entropy of the next-token distribution under sampling settings, in bits."""
    return _reshaped(lm, prompt, settings).entropy_bits


def loss(lm: LanguageModel, prompt: str) -> float:
    """Return the mean of -ln P over the prompt's tokens after the first, in nats."""
    ids = lm.tokenizer.encode(prompt).ids
    return loss_nats(lm(ids)[:-1], ids[1:]).mean().item()


def cosine(lm: LanguageModel, prompt: str, a: str, b: str) -> float:
    """Return the cosine between the embedding rows of two tokens."""
    rows = lm.model.token_embedding.weight.detach()
    return cosine_of(rows[_id(lm, a)], rows[_id(lm, b)]).item()


def nearest(lm: LanguageModel, prompt: str, token: str, among: Sequence[str]) -> str:
    """Name the token, among some, whose embedding row has the largest cosine with a token's."""
    return max(among, key=lambda other: cosine(lm, prompt, token, other))


def distance(lm: LanguageModel, prompt: str, other: str) -> float:
    """Return the total variation distance between the next-token distributions after the prompt and another text."""
    return total_variation(*(softmax(_logits(lm, text)) for text in (prompt, other))).item()


def attention(lm: LanguageModel, prompt: str, layer: int, head: int, query: int, key: int) -> float:
    """Return the weight that a query position gives to a key position."""
    trace = lmcore.Trace()
    lm(lm.tokenizer.encode(prompt).ids, trace=trace)
    return trace[f"blocks.{layer}.attn.pattern"][head, query, key].item()


def parameters(lm: LanguageModel, prompt: str, of: str = "", tied: bool | None = None) -> int:
    """Count the parameters of a published config, by default of the model; tied or not as said."""
    config = lmcore.parameters.PRESETS[of] if of else lm.config
    return lmcore.parameters.count(config, tied).total


MEASURES: dict[str, Callable[..., Answer]] = {
    measure.__name__: measure
    for measure in (
        *(tokens, likeliest, probability, rank, candidates, entropy, loss, cosine, nearest, distance, attention),
        parameters,
    )
}


@dataclass(frozen=True)
class Measure:
    """One of `MEASURES` with its arguments; "model" and "prompt" among them take the place of the step's.

    Raises:
        TypeError: when the arguments do not fit it.
    """

    name: str
    arguments: Mapping[str, Any]

    def __post_init__(self) -> None:
        given = {name: value for name, value in self.arguments.items() if name not in ("model", "prompt")}
        inspect.signature(MEASURES[self.name]).bind(None, None, **given)

    def value(self, lm: LanguageModel, prompt: str) -> Answer:
        """Compute it.

        Args:
            lm: the model; `arguments["model"]` names the one that is meant, when it is not the step's own.
            prompt: the step's prompt.

        Raises:
            ValueError, KeyError, IndexError: when the model or the arguments do not allow it.
        """
        given = {"prompt": prompt, **self.arguments}
        given.pop("model", None)
        return MEASURES[self.name](lm, **given)


def _logits(lm: LanguageModel, prompt: str) -> Tensor:
    return lm(lm.tokenizer.encode(prompt).ids)[-1]


def _reshaped(lm: LanguageModel, prompt: str, settings: Mapping[str, Any]) -> Reshaped:
    ids = lm.tokenizer.encode(prompt).ids
    return lmcore.reshape(lm(ids)[-1], SamplingSettings(**settings), History(prompt=ids))


def _id(lm: LanguageModel, token: str) -> int:
    ids = lm.tokenizer.encode(token).ids[lm.tokenizer.encode("").n_added :]
    if len(ids) != 1:
        raise ValueError(f"{token!r} is {len(ids)} tokens of {lm.name}, not one.")
    return ids[0]
