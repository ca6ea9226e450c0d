"""A generation through an engine: a tree of tokens, a place in it, and a thread that goes on from there until stopped.

The server draws; what it drew is kept with what it was drawn from, so that any of the candidates can be taken instead
and gone on from. Nothing that was drawn is lost when the server fails.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field, replace

from lmcore.engines.candidates import Candidate, Candidates
from lmcore.engines.engine import Engine
from lmcore.engines.errors import EngineError
from lmcore.engines.pieces import Piece, Sampler
from lmcore.worker import Tell, Worker


@dataclass(eq=False, slots=True)
class ServedNode:
    """One token of the tree; the root stands for the whole prompt.

    Attributes:
        parent: the node before; None for the root.
        piece: the token and what it was among; None for the root.
        sampler: what it was drawn with; None for the root and for a token taken by hand.
        children: what followed, in the order it came.
        depth: how many tokens after the prompt this is.
    """

    parent: ServedNode | None
    piece: Piece | None = None
    sampler: Sampler | None = None
    children: list[ServedNode] = field(default_factory=list, repr=False)
    depth: int = field(init=False)

    def __post_init__(self) -> None:
        self.depth = 0 if self.parent is None else self.parent.depth + 1

    @property
    def by_hand(self) -> bool:
        """Whether the reader took it."""
        return self.piece is not None and self.sampler is None

    def path(self) -> list[ServedNode]:
        """Return the nodes from the first token after the prompt to this one."""
        return list(self.lineage())[-2::-1]

    def lineage(self) -> Iterator[ServedNode]:
        """Iterate from this node back to the root."""
        node: ServedNode | None = self
        while node is not None:
            yield node
            node = node.parent

    def nodes(self) -> list[ServedNode]:
        """Return this node and all after it, parents before their children, a branch at a time."""
        found, waiting = [], [self]
        while waiting:
            found.append(node := waiting.pop())
            waiting.extend(reversed(node.children))
        return found

    def leaves(self) -> list[ServedNode]:
        """Return the ends of all branches, in the order in which they were begun."""
        return [node for node in self.nodes() if not node.children]


class EngineRun:
    """Step, run, stop, go back, branch.

    Where the server takes ids and names tokens by them, it streams and is given the very tokens that came. Elsewhere
    it is asked for one token at a time and given the text, which it cuts anew.

    Args:
        engine: which engine.
        prompt: the text to continue.

    Attributes:
        root: the prompt.
        node: where the next token goes.
        tip: the end of the branch in view; `node`, or further on after going back.
        sampler: how the server draws.
        max_new_tokens: the most tokens after the prompt.
        n: how many of the most probable tokens are asked for.
        error: what ended the last run before its time, or None.
        ended: the place at which the server ended the text, or None.
    """

    def __init__(self, engine: Engine, prompt: str) -> None:
        self.engine = engine
        self.prompt_text = prompt
        self.prompt = engine.prompt(prompt)
        self.root = ServedNode(None)
        self.node = self.tip = self.root
        self.sampler = Sampler()
        self.max_new_tokens = 50
        self.n = min(20, engine.capabilities.max_log_probs)
        self.error: EngineError | None = None
        self.ended: ServedNode | None = None
        self._generation = engine.generation
        self._appending = threading.Lock()  # held while a token is appended: no long time
        self._stopping = threading.Event()
        self._stream: Future[int] | None = None
        self._worker: Worker[None] | None = None

    @property
    def running(self) -> bool:
        """Whether more tokens come."""
        return self._worker is not None and self._worker.running

    @property
    def by_ids(self) -> bool:
        """Whether the server is given the very tokens that came."""
        return not isinstance(self.prompt, str)

    @property
    def end(self) -> str:
        """Why no token can follow: "text ended", "max_new_tokens", or "" when one can."""
        if self.ended is self.node:
            return "text ended"
        return "max_new_tokens" if self.node.depth >= self.max_new_tokens else ""

    def text(self, node: ServedNode) -> str:
        """Return what was generated up to a node."""
        return "".join(step.piece.text for step in node.path() if step.piece is not None)

    def step(self) -> None:
        """Begin to draw one token, where one can follow."""
        self._begin(1)

    def start(self) -> None:
        """Run in a thread until the text ends or `stop` is called."""
        self._begin(self.max_new_tokens)

    def stop(self) -> None:
        """Stop at once: no token is appended any more, and the server is told by closing the connection."""
        with self._appending:
            self._stopping.set()
            if self._worker is not None:
                self._worker.stop()
            stream, self._stream = self._stream, None
        if stream is not None:
            stream.cancel()

    def wait(self, seconds: float) -> bool:
        """Wait for the thread; return whether it is over."""
        return self._worker is None or self._worker.join(seconds)

    def go_to(self, node: ServedNode) -> None:
        """Make any node the present place; what follows it in the branch in view stays in view."""
        self.stop()
        self._move_to(node)

    def show_branch(self, leaf: ServedNode) -> None:
        """Go to the end of a branch."""
        self.stop()
        self.node = self.tip = leaf

    def can_take(self, candidate: Candidate) -> bool:
        """Whether the text can go on from a candidate: its id, or else its text, must be known."""
        return candidate.token_id is not None if self.by_ids else bool(candidate.text)

    def take(self, parent: ServedNode, candidate: Candidate, among: Candidates) -> None:
        """Put a candidate after a node and go on from it.

        Raises:
            ValueError: for one the text cannot go on from.
        """
        self.stop()
        if not self.can_take(candidate):
            raise ValueError("the server does not tell what this token is, so that the text cannot go on from it.")
        text = candidate.text
        if not text and candidate.token_id is not None:
            text = self.engine.texts([candidate.token_id])[0]
        for child in parent.children:
            name = child.piece and (child.piece.text if child.piece.token_id is None else child.piece.token_id)
            if name == candidate.name:
                self._move_to(child)
                return
        piece = Piece(text, candidate.token_id, candidate.log_prob, among)
        self._append(parent, ServedNode(parent, piece))

    def _begin(self, most: int) -> None:
        self.stop()
        self.error = None
        if self.end:
            return
        # A new event for each thread: one that still waits for its server must not wake to this run.
        self._stopping = stopping = threading.Event()
        most = min(most, self.max_new_tokens - self.node.depth)
        go = functools.partial(_run, weakref.ref(self), stopping, most)
        self._worker = Worker(go, name="engine run")

    def _prompt_at(self, node: ServedNode) -> str | tuple[int, ...]:
        if isinstance(self.prompt, str):
            return self.prompt + self.text(node)
        ids = [step.piece.token_id for step in node.path() if step.piece is not None]
        return (*self.prompt, *(token_id for token_id in ids if token_id is not None))

    def _sampler_at(self, node: ServedNode) -> Sampler:
        # The server counts from the request's beginning: without this every step would use the stream's first number.
        return replace(self.sampler, seed=self.sampler.seed + node.depth)

    def _check(self) -> None:
        self.engine.check()
        if self.engine.generation != self._generation:
            raise EngineError(
                "model changed", f"{self.engine.name}: this text is the former model's, and another one answers now."
            )

    def _room(self) -> int:
        """How many tokens the server can still append, at least one: where there is no room, it says so itself.

        Asked for more, it ends the stream where its context is full, as if the text had ended there.
        """
        length = self.engine.capabilities.context_length
        return max(length - len(self._prompt_at(self.node)), 1) if length else self.max_new_tokens

    def _begin_stream(self, stopping: threading.Event, most: int) -> Future[int]:
        """Ask for a stream whose tokens are appended as they come, as long as this run is wanted."""
        reference, sampler = weakref.ref(self), self._sampler_at(self.node)

        def take(piece: Piece) -> bool:
            run = reference()
            return run is not None and run._take_drawn(piece, sampler, stopping)

        future = self.engine.stream(self._prompt_at(self.node), sampler, self.n, most, take)
        with self._appending:
            self._stream = future
            if stopping.is_set():
                future.cancel()
        return future

    def _take_drawn(self, piece: Piece, sampler: Sampler, stopping: threading.Event) -> bool:
        """Append a token that came, unless the run was stopped meanwhile; return whether it was appended."""
        with self._appending:
            if stopping.is_set():
                return False
            self._append(self.node, ServedNode(self.node, piece, sampler))
            return True

    def _append(self, parent: ServedNode, node: ServedNode) -> None:
        parent.children.append(node)
        self._move_to(node)

    def _move_to(self, node: ServedNode) -> None:
        # The tip first: who reads `node` and then `tip` meanwhile never finds the place beyond the branch in view.
        if node.parent is self.tip or node not in self.tip.lineage():
            self.tip = node
        self.node = node


def _run(reference: weakref.ref[EngineRun], stopping: threading.Event, most: int, _tell: Tell[None]) -> None:
    """Append tokens until the text ends, the run is stopped, or nobody refers to it any more."""
    while most > 0 and not stopping.is_set():
        run = reference()
        if run is None or run.end:
            return
        name = run.engine.name
        try:
            run._check()
            if run.by_ids and most > 1:
                asked = min(most, run._room())
                future = run._begin_stream(stopping, asked)
                del run  # while the server draws nothing here refers to it
                count = future.result()
                run = reference()
                if run is not None and count < asked and not stopping.is_set():
                    run.ended = run.node
                most -= asked
                continue
            sampler = run._sampler_at(run.node)
            drawn = run.engine.draw(run._prompt_at(run.node), sampler, run.n)
            if not drawn:
                run.ended = run.node
                return
            for piece in drawn:
                if not run._take_drawn(piece, sampler, stopping):
                    return
            most -= len(drawn)
        except CancelledError:
            return
        except Exception as error:  # whatever it is, the reader is told; a thread has nobody else to tell
            run = reference()
            if run is not None and not stopping.is_set():
                sentence = f"{name}: the text could not go on ({type(error).__name__})."
                run.error = error if isinstance(error, EngineError) else EngineError("failing", sentence)
            return
