"""What a lesson's question can be answered with: each a number or a text computed from a model and a prompt.

The first two arguments are the step's model and prompt; the others are what the lesson's file gives. `KINDS` says what
each can come to, so that a choice which no answer could meet is noticed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

import lmcore
from lmcore import History, LanguageModel, Reshaped, SamplingSettings, Trace
from lmcore.analysis.embedding.history import embedding_history
from lmcore.analysis.embedding.similarity import cosine as cosine_of
from lmcore.analysis.logits.lens import LensLayer, logit_lens
from lmcore.analysis.training.embedding_gradient import split_embedding_gradient
from lmcore.analysis.training.one_step import gradients, points_along
from lmcore.distribution import kl_bits, loss_nats, softmax, total_variation
from lmcore.sampling import draw_many, new_generator
from pages.common.text import _

Answer = float | int | str
Kind = Literal["count", "share", "cosine", "distance", "bits", "nats", "token", "text"]
Load = Callable[[str], LanguageModel]

MEASURES: dict[str, Callable[..., Answer]] = {}
KINDS: dict[str, Kind] = {}
LOWEST: dict[Kind, float] = {"count": 0, "share": 0, "cosine": -1, "distance": 0, "bits": 0, "nats": 0}
HIGHEST: dict[Kind, float] = {"share": 1, "cosine": 1, "distance": 1}
LONGEST = 200  # tokens that a question may have generated or drawn


class NotMeasurable(ValueError):
    """Why a measure cannot be taken here, in the reader's language."""


def _of_kind(kind: Kind) -> Callable[[Callable[..., Answer]], Callable[..., Answer]]:
    def add(measure: Callable[..., Answer]) -> Callable[..., Answer]:
        MEASURES[measure.__name__], KINDS[measure.__name__] = measure, kind
        return measure

    return add


@_of_kind("count")
def tokens(lm: LanguageModel, prompt: str) -> int:
    """Count the prompt's tokens."""
    return len(lm.tokenizer.encode(prompt).ids)


@_of_kind("token")
def likeliest(lm: LanguageModel, prompt: str, **settings: Any) -> str:
    """Name the most probable next token, under sampling settings when there are any."""
    return _text_of(lm, int(_reshaped(lm, prompt, settings).probs.argmax()))


@_of_kind("share")
def probability(lm: LanguageModel, prompt: str, token: str, **settings: Any) -> float:
    """Return the probability that a token comes next, under sampling settings such as temperature=0.5."""
    return _reshaped(lm, prompt, settings).probs[token_id(lm, token)].item()


@_of_kind("count")
def rank(lm: LanguageModel, prompt: str, token: str) -> int:
    """Return the rank of a token among all next tokens, 1 for the most probable."""
    logits = _logits(lm, prompt)
    return 1 + int((logits > logits[token_id(lm, token)]).sum())


@_of_kind("count")
def candidates(lm: LanguageModel, prompt: str, **settings: Any) -> int:
    """Count the tokens that can still be drawn under sampling settings: the size of the kept set."""
    return _reshaped(lm, prompt, settings).candidates


@_of_kind("share")
def kept(lm: LanguageModel, prompt: str, **settings: Any) -> float:
    """Return the probability, at temperature 1, of all tokens that can still be drawn under sampling settings."""
    result = _reshaped(lm, prompt, settings)
    return min(1.0, result.initial_probs[result.kept_ids].sum().item())


@_of_kind("bits")
def entropy(lm: LanguageModel, prompt: str, **settings: Any) -> float:
    """Return the entropy of the next-token distribution under sampling settings, in bits."""
    return _reshaped(lm, prompt, settings).entropy_bits


@_of_kind("nats")
def loss(lm: LanguageModel, prompt: str, position: int | None = None, token: str | None = None) -> float:
    """Return the mean of -ln P over the prompt's tokens after the first, in nats; with the token at one changed."""
    ids = list(lm.tokenizer.encode(prompt).ids)
    if position is not None and token is not None:
        ids[_within(position, len(ids), "position")] = token_id(lm, token)
    if len(ids) < 2:
        raise NotMeasurable(_("a loss needs a prompt of at least two tokens"))
    return loss_nats(lm(ids)[:-1], ids[1:]).mean().item()


@_of_kind("nats")
def loss_after_step(lm: LanguageModel, prompt: str, rate: float) -> float:
    """Return the prompt's loss after one step of gradient descent on it, in nats."""
    ids = lm.tokenizer.encode(prompt).ids
    gradient = gradients(lm.model, ids, last_only=False)
    return next(points_along(lm.model, gradient, [rate], ids, last_only=False)).loss


@_of_kind("count")
def rows_moved(lm: LanguageModel, prompt: str, side: Literal["input", "output"]) -> int:
    """Count the rows of the table that get a gradient from the lookup ("input") or from the head ("output")."""
    if side not in ("input", "output"):
        raise NotMeasurable(_("side is {given}; it is input or output").format(given=repr(side)))
    parts = split_embedding_gradient(lm.model, torch.tensor(lm.tokenizer.encode(prompt).ids))
    return int(((parts.input_side if side == "input" else parts.output_side) != 0).any(dim=-1).sum())


@_of_kind("cosine")
def gradient_cosine(lm: LanguageModel, prompt: str) -> float:
    """Return the cosine between what the lookup and the head send back to the table."""
    return split_embedding_gradient(lm.model, torch.tensor(lm.tokenizer.encode(prompt).ids)).cosine


@_of_kind("cosine")
def cosine(lm: LanguageModel, prompt: str, a: str, b: str, step: int | None = None) -> float:
    """Return the cosine between the embedding rows of two tokens, now or as they were at a step of the training."""
    rows = lm.model.token_embedding.weight.detach()
    if step is not None:
        history = embedding_history(lm)
        if step not in history:
            known = ", ".join(map(str, history))
            raise NotMeasurable(
                _("the table was kept at the steps {known}, not at {given}").format(known=known, given=step)
            )
        rows = history[step]
    return cosine_of(rows[token_id(lm, a)], rows[token_id(lm, b)]).item()


@_of_kind("token")
def nearest(lm: LanguageModel, prompt: str, token: str, among: Sequence[str]) -> str:
    """Name the token, among some, whose embedding row has the largest cosine with a token's."""
    return max(among, key=lambda other: cosine(lm, prompt, token, other))


@_of_kind("cosine")
def state_cosine(lm: LanguageModel, prompt: str, other: str, depth: int, position: int = -1) -> float:
    """Return the cosine between the vectors at a position of the prompt and of another text, after `depth` blocks."""
    first, second = (_state(lm, text, depth, position) for text in (prompt, other))
    return cosine_of(first, second).item()


@_of_kind("distance")
def distance(lm: LanguageModel, prompt: str, other: str) -> float:
    """Return the total variation distance between the next-token distributions after the prompt and another text."""
    return total_variation(*(softmax(_logits(lm, text)) for text in (prompt, other))).item()


@_of_kind("bits")
def divergence(lm: LanguageModel, prompt: str, other: str | None = None, against: LanguageModel | None = None) -> float:
    """Return the Kullback-Leibler divergence of the next token from that after another text, or of another model."""
    there = lm if against is None else against
    p, q = softmax(_logits(lm, prompt)), softmax(_logits(there, prompt if other is None else other))
    if p.shape != q.shape:
        raise NotMeasurable(_("{a} and {b} have different vocabularies").format(a=lm.name, b=there.name))
    return kl_bits(p, q).item()


@_of_kind("share")
def attention(lm: LanguageModel, prompt: str, layer: int, head: int, query: int, key: int | str) -> float:
    """Return the weight that a query position gives to a key position, or to all positions of a token."""
    ids = lm.tokenizer.encode(prompt).ids
    _within(layer, lm.config.n_layers, "layer"), _within(head, lm.config.n_heads, "head")
    row = _trace(lm, ids)[f"blocks.{layer % lm.config.n_layers}.attn.pattern"][head, _within(query, len(ids), "query")]
    if isinstance(key, str):
        token = token_id(lm, key)
        return min(1.0, sum(row[place].item() for place, there in enumerate(ids) if there == token))
    return row[_within(key, len(ids), "key")].item()


@_of_kind("share")
def lens(lm: LanguageModel, prompt: str, token: str, depth: int) -> float:
    """Return the probability of a token read after `depth` blocks, 0 for the embedding, through the head."""
    return _lens(lm, prompt, token_id(lm, token), depth).target_probs[-1].item()


@_of_kind("token")
def lens_likeliest(lm: LanguageModel, prompt: str, depth: int) -> str:
    """Name the most probable token read after `depth` blocks, 0 for the embedding, through the head."""
    return _text_of(lm, int(_lens(lm, prompt, 0, depth).top_ids[-1]))


@_of_kind("text")
def generated(lm: LanguageModel, prompt: str, n: int, seed: int = 0, **settings: Any) -> str:
    """Return the text of n tokens generated with a seed."""
    return b"".join(_generated(lm, prompt, n, seed, settings)[1]).decode("utf-8", "replace")


@_of_kind("count")
def different(lm: LanguageModel, prompt: str, n: int, seed: int = 0, **settings: Any) -> int:
    """Count the different tokens among n that are generated with a seed."""
    return len(set(_generated(lm, prompt, n, seed, settings)[0]))


@_of_kind("count")
def drawn(lm: LanguageModel, prompt: str, token: str, n: int, seed: int = 0, **settings: Any) -> int:
    """Count how often a token comes when the next token is drawn n times with a seed."""
    result, wanted = _reshaped(lm, prompt, settings), token_id(lm, token)
    return int((draw_many(result, _few(n), new_generator(seed)) == wanted).sum())


@_of_kind("count")
def parameters(lm: LanguageModel, prompt: str, of: str = "", tied: bool | None = None, part: str = "") -> int:
    """Count the parameters of a published config, by default of the model; tied or not as said; or a part of them."""
    if of and of not in lmcore.parameters.PRESETS:
        known = ", ".join(lmcore.parameters.PRESETS)
        raise NotMeasurable(_("there is no published config {given}; there are {known}").format(given=of, known=known))
    counted = lmcore.parameters.count(lmcore.parameters.PRESETS[of] if of else lm.config, tied)
    if part and part not in lmcore.parameters.GROUPS:
        known = ", ".join(lmcore.parameters.GROUPS)
        raise NotMeasurable(_("there is no part {given} of a model; there are {known}").format(given=part, known=known))
    return counted.group_totals.get(part, 0) if part else counted.total  # type: ignore[call-overload]


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

    @property
    def kind(self) -> Kind:
        """What the answer is: a count, a share, a text."""
        return KINDS[self.name]

    def value(self, lm: LanguageModel, prompt: str, load: Load = lmcore.load) -> Answer:
        """Compute it.

        Args:
            lm: the model; `arguments["model"]` names the one that is meant, when it is not the step's own.
            prompt: the step's prompt.
            load: gives another model that a measure compares with, by name.

        Raises:
            ValueError, TypeError, KeyError, IndexError: when the model or the arguments do not allow it.
        """
        given = {"prompt": prompt, **self.arguments}
        given.pop("model", None)
        if "against" in given:
            given["against"] = load(given["against"])
        return MEASURES[self.name](lm, **given)


def _logits(lm: LanguageModel, prompt: str) -> Tensor:
    ids = lm.tokenizer.encode(prompt).ids
    if not ids:
        raise NotMeasurable(_("the prompt has no token"))
    return lm(ids)[-1]


def _reshaped(lm: LanguageModel, prompt: str, settings: Mapping[str, Any]) -> Reshaped:
    return lmcore.reshape(_logits(lm, prompt), _settings(settings), History(prompt=lm.tokenizer.encode(prompt).ids))


def _settings(given: Mapping[str, Any], **others: Any) -> SamplingSettings:
    try:
        return SamplingSettings(**given, **others)
    except TypeError as error:
        raise NotMeasurable(
            _("{given} is not all that a sampler can be set to: {reason}").format(given=", ".join(given), reason=error)
        ) from error


def _trace(lm: LanguageModel, ids: Sequence[int]) -> Trace:
    trace = Trace()
    lm(ids, trace=trace)
    return trace


def _state(lm: LanguageModel, text: str, depth: int, position: int) -> Tensor:
    ids = lm.tokenizer.encode(text).ids
    _within(depth, lm.config.n_layers + 1, "depth")
    name = "blocks.0.resid_pre" if depth == 0 else f"blocks.{depth - 1}.resid_post"
    return _trace(lm, ids)[name][_within(position, len(ids), "position")]


def _lens(lm: LanguageModel, prompt: str, token: int, depth: int) -> LensLayer:
    _within(depth, lm.config.n_layers + 1, "depth")
    trace = _trace(lm, lm.tokenizer.encode(prompt).ids)
    return list(logit_lens(lm.model, trace, token, slice(-1, None), within_blocks=False))[depth]


def _generated(
    lm: LanguageModel, prompt: str, n: int, seed: int, settings: Mapping[str, Any]
) -> tuple[list[int], list[bytes]]:
    ids = lm.tokenizer.encode(prompt).ids
    steps = list(lmcore.generate(lm, ids, _settings(settings, seed=seed), max_new_tokens=_few(n)))
    return [step.token_id for step in steps], [step.token for step in steps]


def _few(n: int) -> int:
    if not isinstance(n, int) or not 1 <= n <= LONGEST:
        raise NotMeasurable(_("n is {n}; it is a whole number from 1 to {limit}").format(n=repr(n), limit=LONGEST))
    return n


def _within(index: int, length: int, name: str) -> int:
    if not isinstance(index, int) or not -length <= index < length:
        raise NotMeasurable(
            _("{name} is {given}; it is a whole number from 0 to {last}, or -1 for the last").format(
                name=name, given=repr(index), last=length - 1
            )
        )
    return index


def _text_of(lm: LanguageModel, token_id: int) -> str:
    return lm.tokenizer.token_bytes(token_id).decode("utf-8", "replace")


def token_id(lm: LanguageModel, token: str) -> int:
    """Return the id of a token by its text; NotMeasurable says when the text is not one token of the model."""
    if not isinstance(token, str):
        raise NotMeasurable(_("{token} is no text, and a token is given by its text").format(token=repr(token)))
    ids = lm.tokenizer.encode(token).ids[lm.tokenizer.encode("").n_added :]
    if len(ids) != 1:
        raise NotMeasurable(
            _("{token} is {n} tokens of {model}, not one").format(token=repr(token), n=len(ids), model=lm.name)
        )
    return ids[0]
