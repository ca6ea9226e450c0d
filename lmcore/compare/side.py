"""One side of a comparison: a model, what it reads, and how it draws; and what came of it, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import torch
from torch import Tensor

from lmcore import chat
from lmcore.chat.template import ChatTemplate
from lmcore.engines.top_tokens import TopToken, TopTokens
from lmcore.generation import GenerationStep, generate
from lmcore.generation.stopping import stop_match
from lmcore.language_model import LanguageModel
from lmcore.sampling import SamplingSettings, new_generator
from lmcore.tokenizer import Tokenizer

__all__ = ["Drawn", "Forward", "LocalRun", "Passes", "Run", "Side"]

Forward: TypeAlias = "Callable[[LanguageModel, tuple[int, ...]], Tensor]"
"""What runs a model over ids and returns the logits [S, V]: a page has a cache of them."""


class Passes:
    """Runs models, and keeps the latest logits of two of them: both sides of a comparison."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, tuple[int, ...]], Tensor] = {}

    def __call__(self, lm: LanguageModel, ids: tuple[int, ...]) -> Tensor:
        """Return the logits [S, V]."""
        key = id(lm), ids  # the runs hold the models, so that an id is that of one model
        if key not in self._kept:
            self._kept = dict(list(self._kept.items())[-1:])
            self._kept[key] = lm(ids)
        return self._kept[key]


@dataclass(frozen=True, kw_only=True)
class Side:
    """What one side is given.

    Attributes:
        model: the model.
        text: what it reads; not looked at where `messages` are given.
        ids: the very tokens it reads; `text` then says what they were made of, if anything does.
        messages: a conversation, which its chat template writes as a text.
        template: another template than the model's own.
        options: of the template, as for `lmcore.chat.encode`; "user_text_stays_text" is one.
        control: whether a control string in the text is the control token; in a text that a template wrote it is.
        begin: whether what the tokenizer puts before every text, a BOS, is put there.
        settings: how a token is drawn.
        stop: texts that end what is generated.
        stop_ids: tokens that end it; None for the model's own.
        max_new_tokens: how many tokens are generated; with 0 nothing is drawn.
        name: what to call it; the model's name by itself.
    """

    model: LanguageModel
    text: str | None = None
    ids: tuple[int, ...] | None = None
    messages: tuple[Mapping[str, Any], ...] = ()
    template: ChatTemplate | str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    control: bool = False
    begin: bool = True
    settings: SamplingSettings = SamplingSettings()  # noqa: RUF009 - frozen
    stop: tuple[str, ...] = ()
    stop_ids: tuple[int, ...] | None = None
    max_new_tokens: int = 0
    name: str = ""


@dataclass(frozen=True)
class Drawn:
    """One token that came after the prompt.

    Attributes:
        token: its bytes.
        token_id: its id; None where a server does not tell it.
        log_prob: ln of its probability under the model, before the sampler; None where a server does not tell it.
        among: the most probable tokens at its place, by the model or as told.
        kept: how many tokens the sampler left to draw from; None where that is not known.
    """

    token: bytes
    token_id: int | None
    log_prob: float | None
    among: tuple[TopToken, ...]
    kept: int | None = None


class Run(Protocol):
    """What one side did, as far as it is known: None stands for what is not."""

    @property
    def name(self) -> str:
        """What to call it."""

    @property
    def text(self) -> str | None:
        """The text it read, as the template wrote it."""

    @property
    def ids(self) -> tuple[int, ...] | None:
        """The tokens of it."""

    @property
    def tokens(self) -> tuple[bytes, ...] | None:
        """Their bytes."""

    @property
    def tokenizer(self) -> Tokenizer | None:
        """Where it is here."""

    @property
    def logits(self) -> Tensor | None:
        """[S, V], where the model is here."""

    @property
    def places(self) -> Mapping[int, TopTokens]:
        """Position -> the most probable tokens after it as a server told them; empty where the model is here."""

    @property
    def settings(self) -> SamplingSettings | None:
        """How it draws."""

    @property
    def ends(self) -> Mapping[str, Any] | None:
        """What ends its text: "stop", "stop_ids", "max_new_tokens", as far as they are known."""

    @property
    def drawn(self) -> tuple[Drawn, ...]:
        """What came after the prompt; empty where nothing was drawn."""


_TOLD = 20  # candidates of a drawn token that are kept


class LocalRun:
    """A model of this machine at work; each of its parts is computed when it is first asked for.

    Args:
        side: what it is given.
        forward: runs the model.
        lock: held while a token is drawn, and free between two.

    Raises:
        ValueError: nothing to read.
    """

    def __init__(
        self,
        side: Side,
        forward: Forward,
        lock: AbstractContextManager[object] = nullcontext(),  # noqa: B008
    ) -> None:
        if side.ids is None and not side.messages and side.text is None:
            raise ValueError(f"{side.name or side.model.name} has nothing to read: give a text, ids or messages.")
        self.side = side
        self.lm = side.model
        self.name = side.name or side.model.name
        self.tokenizer = side.model.tokenizer
        self.settings = side.settings
        self.places: Mapping[int, TopTokens] = {}
        self._forward, self._lock = forward, lock

    @cached_property
    def text(self) -> str | None:
        """The text it reads; None where it is given the tokens themselves and no text."""
        return self._read[0]

    @cached_property
    def ids(self) -> tuple[int, ...]:
        """The tokens it reads."""
        return self._read[1]

    @cached_property
    def tokens(self) -> tuple[bytes, ...]:
        """Their bytes."""
        return tuple(map(self.tokenizer.token_bytes, self.ids))

    @property
    def logits(self) -> Tensor:
        """The model's logits after every position, [S, V]; who runs the model keeps them."""
        return self._forward(self.lm, self.ids)

    @property
    def ends(self) -> dict[str, Any]:
        """What ends its text."""
        stop_ids = self.lm.end_tokens if self.side.stop_ids is None else self.side.stop_ids
        return {
            "stop": tuple(sorted(self.side.stop)),
            "stop_ids": tuple(sorted(stop_ids)),
            "max_new_tokens": self.side.max_new_tokens,
        }

    @cached_property
    def drawn(self) -> tuple[Drawn, ...]:
        """What it generates."""
        return tuple(self.draws())

    def draws(self) -> Iterator[Drawn]:
        """Yield what it generates, token by token."""
        if not self.side.max_new_tokens:
            return
        tokens: list[bytes] = []
        steps = generate(
            self.lm,
            self.ids,
            self.settings,
            max_new_tokens=self.side.max_new_tokens,
            stop_ids=self.ends["stop_ids"],
            generator=new_generator(self.settings.seed),
        )
        while not stop_match(tokens, self.side.stop):
            with self._lock:
                step = next(steps, None)
            if step is None:
                break
            tokens.append(step.token)
            yield _drawn(step, self.tokenizer)

    @cached_property
    def _read(self) -> tuple[str | None, tuple[int, ...]]:
        side, tokenizer = self.side, self.tokenizer
        if side.ids is not None:
            return side.text, tuple(side.ids)
        if side.messages:
            found = chat.encode(self.lm, side.messages, template=side.template, **side.options)
        else:
            assert side.text is not None
            found = tokenizer.encode(side.text, special_tokens=side.control, add_first=side.begin)
        if not found.ids:
            raise ValueError(f"{self.name} reads no token at all: type a text.")
        return found.text, tuple(found.ids)


def _drawn(step: GenerationStep, tokenizer: Tokenizer) -> Drawn:
    """Keep of a step what a comparison shows: the logits of a long text would fill the memory."""
    log_probs = torch.log_softmax(step.logits.double(), -1)
    best = log_probs.topk(min(_TOLD, len(log_probs)))
    among = tuple(
        TopToken(value, rank, token_id, tokenizer.decode([token_id]))
        for rank, (value, token_id) in enumerate(zip(best.values.tolist(), best.indices.tolist(), strict=True), 1)
    )
    return Drawn(step.token, step.token_id, float(log_probs[step.token_id]), among, step.result.candidates)
