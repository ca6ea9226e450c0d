"""A generation through an engine: its server draws, and what it drew is kept with what it was drawn from."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace

from lmcore.engines.drawing import DrawnToken, Sampler
from lmcore.engines.engine import Engine
from lmcore.engines.errors import EngineError
from lmcore.engines.top_tokens import TopToken, TopTokens
from lmcore.generation.text_run import Take, TextRun
from lmcore.generation.text_tree import TextNode, TextTree

_NONE = TopTokens((), (), (), 0)


@dataclass(eq=False, slots=True)
class ServedNode(TextNode):
    """One token that a server gave; see `TextNode` for the rest.

    Attributes:
        settings: what it was drawn with; None for the root and for a token taken by hand.
        among: the most probable tokens at its place.
    """

    settings: Sampler | None = None
    among: TopTokens = _NONE

    @property
    def text(self) -> str:
        """What it adds to the text; "" while a character is not whole."""
        return self.token.decode("utf-8", "surrogatepass")

    @property
    def drawn(self) -> DrawnToken | None:
        """The token as the server told it; None for the root."""
        return None if self.parent is None else DrawnToken(self.text, self.token_id, self.log_prob, self.among)

    piece = drawn  # as older snippets name it


class EngineRun(TextRun[ServedNode]):
    """A run whose tokens an engine gives; see `TextRun`. Nothing that was drawn is lost when the server fails.

    Where the server takes ids and names tokens by them, it streams and is given the very tokens that came. Elsewhere
    it is asked for one token at a time and given the text, which it cuts anew.

    Args:
        engine: which engine.
        prompt: the text to continue.

    Attributes:
        sampler: how the server draws.
        n: how many of the most probable tokens are asked for.
    """

    def __init__(self, engine: Engine, prompt: str) -> None:
        super().__init__(TextTree(ServedNode(None)))
        self.engine = engine
        self.prompt_text = prompt
        self.prompt = engine.prompt(prompt)
        self.sampler = Sampler()
        self.n = min(20, engine.capabilities.max_log_probs)
        self._generation = engine.generation
        self._stream: Future[int] | None = None

    @property
    def by_ids(self) -> bool:
        """Whether the server is given the very tokens that came."""
        return not isinstance(self.prompt, str)

    def text(self, node: ServedNode) -> str:
        """Return what was generated up to a node."""
        return "".join(step.text for step in node.path())

    def can_take(self, candidate: TopToken) -> bool:
        """Whether the text can go on from a candidate: its id, or else its text, must be known."""
        return candidate.token_id is not None if self.by_ids else bool(candidate.text)

    def take(self, parent: ServedNode, candidate: TopToken, among: TopTokens) -> None:
        """Put a candidate after a node and go on from it, or go to it where it is there already.

        Raises:
            ValueError: for one the text cannot go on from.
        """
        self.stop()
        if not self.can_take(candidate):
            raise ValueError("the server does not tell what this token is, so that the text cannot go on from it.")
        for child in parent.children:
            if candidate.name == (child.text if child.token_id is None else child.token_id):
                self._move_to(child)
                return
        text = candidate.text
        if not text and candidate.token_id is not None:
            text = self.engine.texts([candidate.token_id])[0]
        self._put(_node(parent, DrawnToken(text, candidate.token_id, candidate.log_prob, among), None))

    def _ask(self, take: Take[ServedNode], until: float, stopping: threading.Event) -> Callable[[], bool]:
        self._check()
        place = self.node
        engine, prompt, n = self.engine, self._prompt_at(place), self.n
        # The server counts from the request's beginning: without this every step would use the stream's first number.
        sampler = replace(self.sampler, seed=self.sampler.seed + place.depth)
        got = _one_after_another(place, sampler, take)
        most = int(min(until, self.max_new_tokens)) - place.depth
        if self.by_ids and most > 1:
            asked = min(most, self._room(prompt))
            stream = engine.stream(prompt, sampler, n, asked, got)
            with self._appending:
                self._stream = stream
                if stopping.is_set():
                    stream.cancel()
            return lambda: stream.result() == asked

        def draw() -> bool:
            drawn = engine.draw(prompt, sampler, n)
            return bool(drawn) and all(map(got, drawn))

        return draw

    def _give_up(self) -> None:
        if self._stream is not None:
            self._stream.cancel()  # the server is told by closing the connection
            self._stream = None

    def _failure(self, error: Exception) -> Exception:
        if not isinstance(error, EngineError):
            sentence = f"{self.engine.name}: the text could not go on ({type(error).__name__})."
            error = EngineError("failing", sentence)
        return super()._failure(error)

    def _prompt_at(self, node: ServedNode) -> str | tuple[int, ...]:
        if isinstance(self.prompt, str):
            return self.prompt + self.text(node)
        ids = (step.token_id for step in node.path())
        return (*self.prompt, *(token_id for token_id in ids if token_id is not None))

    def _check(self) -> None:
        self.engine.check()
        if self.engine.generation != self._generation:
            raise EngineError(
                "model changed", f"{self.engine.name}: this text is the former model's, and another one answers now."
            )

    def _room(self, prompt: str | tuple[int, ...]) -> int:
        """How many tokens the server can still append, at least one: where there is no room, it says so itself.

        Asked for more, it ends the stream where its context is full, as if the text had ended there.
        """
        length = self.engine.capabilities.context_length
        return max(length - len(prompt), 1) if length else self.max_new_tokens


def _node(parent: ServedNode, token: DrawnToken, sampler: Sampler | None) -> ServedNode:
    return ServedNode(
        parent,
        token.token_id,
        token.text.encode("utf-8", "surrogatepass"),
        settings=sampler,
        by_hand=sampler is None,
        log_prob=token.log_prob,
        rank=token.rank,
        among=token.among,
    )


def _one_after_another(place: ServedNode, sampler: Sampler, take: Take[ServedNode]) -> Callable[[DrawnToken], bool]:
    """Return what puts each token that comes after the one before, and says whether it was wanted."""
    last = place

    def got(token: DrawnToken) -> bool:
        nonlocal last
        placed = take(_node(last, token, sampler))
        last = placed or last
        return placed is not None

    return got
