"""A side that runs elsewhere: an engine, asked what it makes of a text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lmcore.compare.side import Drawn
from lmcore.engines.drawing import DrawnToken, Sampler
from lmcore.engines.top_tokens import TopTokens
from lmcore.sampling import SamplingSettings

if TYPE_CHECKING:
    from lmcore.engines.engine import Engine

__all__ = ["Served", "ServedRun"]

N = 20  # most probable tokens asked for


@dataclass(frozen=True, kw_only=True)
class Served:
    """What an engine is given.

    Attributes:
        engine: which one.
        text: what it reads; its server cuts it into tokens.
        settings: how it draws: temperature, top_k, top_p and seed are sent, the rest turned off.
        max_new_tokens: how many tokens it generates; with 0 nothing is drawn.
        name: what to call it; the engine's name by itself.
    """

    engine: Engine
    text: str | None = None
    settings: SamplingSettings = SamplingSettings()  # noqa: RUF009 - frozen
    max_new_tokens: int = 0
    name: str = ""


class ServedRun:
    """An engine at work, asked when a part is first looked at.

    Raises:
        ValueError: nothing to read.
        EngineError: from each part, when the server does not answer.
    """

    def __init__(self, side: Served) -> None:
        if not side.text:
            raise ValueError(f"{side.name or side.engine.name} has nothing to read: give a text.")
        self.side = side
        self.engine = side.engine
        self.name = side.name or side.engine.name
        self.text: str | None = str.__str__(side.text)
        self.tokenizer = None
        self.logits = None
        self._text: str = side.text

    @cached_property
    def ids(self) -> tuple[int, ...] | None:
        """The server's own tokens, where it tells them."""
        return self._tokens and self._tokens.ids

    @cached_property
    def tokens(self) -> tuple[bytes, ...] | None:
        """Their bytes, or what stands for them."""
        if self._tokens is None:
            return None
        return tuple(each if isinstance(each, bytes) else each.encode() for each in self._tokens.labels)

    @cached_property
    def places(self) -> Mapping[int, TopTokens]:
        """What the server holds most probable after each position; after the last one only, if it tells no more."""
        if self.ids is None:
            return {}
        engine, prompt = self.engine, self.engine.prompt(self._text)
        n, last = min(N, engine.capabilities.max_log_probs), len(self.ids) - 1
        if engine.capabilities.prompt_scores == "none":
            return {last: engine.next(prompt, n)}
        scores, following = engine.prompt_scores(prompt, n)
        foreseen = {i - 1: each.foreseen for i, each in enumerate(scores) if i and each.foreseen}
        return {**foreseen, last: following}

    @cached_property
    def settings(self) -> SamplingSettings | None:
        """What is sent: the server is told to turn the rest off."""
        asked, fields = self.side.settings, self.engine.capabilities.fields
        top_k = asked.top_k if fields is not None and "top_k" in fields else None
        return SamplingSettings(temperature=asked.temperature, top_k=top_k, top_p=asked.top_p, seed=asked.seed)

    @property
    def ends(self) -> dict[str, Any] | None:
        """What ends its text is the server's own business; only the length is asked for."""
        return {"max_new_tokens": self.side.max_new_tokens}

    @cached_property
    def drawn(self) -> tuple[Drawn, ...]:
        """What the server draws."""
        if not self.side.max_new_tokens:
            return ()
        pieces: list[DrawnToken] = []
        settings = self.side.settings
        sampler = Sampler(settings.temperature, settings.top_k or 0, settings.top_p, settings.seed or 0)
        n = min(N, self.engine.capabilities.max_log_probs)
        prompt = self.engine.prompt(self._text)

        def take(piece: DrawnToken) -> bool:
            pieces.append(piece)
            return True

        self.engine.stream(prompt, sampler, n, self.side.max_new_tokens, take).result()
        return tuple(
            Drawn(each.text.encode("utf-8", "surrogatepass"), each.token_id, each.log_prob, each.among.best)
            for each in pieces
        )

    @cached_property
    def _tokens(self):  # noqa: ANN202
        return self.engine.tokenize(self._text) if self.engine.capabilities.tokenizer is not None else None
