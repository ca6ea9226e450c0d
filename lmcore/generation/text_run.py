"""A text one walks through while it grows: a tree, a place in it, and a thread that goes on until told to stop.

A run asks its source, a local model or an engine, for the tokens after the present place. What it gets back waits for
them, hands each to `take` as it comes, and does not refer to the run: while the source is at work nothing here keeps
the run alive, and a run that its owner forgets ends.
"""

from __future__ import annotations

import functools
import math
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Generic, Literal

from lmcore.generation.text_tree import AnyNode, Pruned, TextTree
from lmcore.worker import BREATH, Tell, Worker

End = Literal["", "stop token", "stop string", "context full", "text ended", "max_new_tokens", "constraint"]
Take = Callable[[AnyNode], AnyNode | None]
"""Takes a token that came; returns the node that stands for it, or None when no more are wanted."""


class TextRun(Generic[AnyNode]):
    """Step, run, stop, go back, branch; nothing that was drawn is lost.

    Args:
        tree: where the tokens go.
        lock: held while the tree is cut, for those who read it meanwhile.

    Attributes:
        tree: everything tried so far.
        node: where the next token goes.
        tip: the end of the branch in view; `node` itself, or further on after going back.
        max_new_tokens: the most tokens after the prompt.
        tokens_per_second: the pace of running; 0 is as fast as it goes.
        error: what ended the last run before its time, or None.
        ended: the place at which the source ended the text, or None.
        pruned: what was cut off, the latest last; `undo_prune` puts it back.
    """

    def __init__(self, tree: TextTree[AnyNode], lock: AbstractContextManager[object] | None = None) -> None:
        self.tree = tree
        self.node = self.tip = tree.root
        self.max_new_tokens = 50
        self.tokens_per_second = 0.0
        self.error: Exception | None = None
        self.ended: AnyNode | None = None
        self.pruned: list[Pruned[AnyNode]] = []
        self._lock: AbstractContextManager[object] = lock or nullcontext()
        self._appending = threading.Lock()  # held while a token is appended: no long time
        self._stopping = threading.Event()
        self._worker: Worker[None] | None = None

    @property
    def running(self) -> bool:
        """Whether more tokens come; not from the moment on at which it was asked to stop."""
        return self._worker is not None and self._worker.running

    @property
    def end(self) -> End:
        """Why no token can follow the present place; "" when one can."""
        if self.ended is self.node:
            return "text ended"
        return "max_new_tokens" if self.node.depth >= self.max_new_tokens else ""

    def step(self) -> None:
        """Begin to draw one token, where one can follow."""
        self._begin(self.node.depth + 1)

    def start(self) -> None:
        """Run in a thread until the text ends or `stop` is called."""
        self._begin(math.inf)

    def ask_to_stop(self) -> None:
        """Stop at once: no token is appended any more, even if the source is still busy with the next."""
        with self._appending:
            self._stopping.set()
            if self._worker is not None:
                self._worker.stop()
            self._give_up()

    def stop(self) -> None:
        """Stop at once; `start` goes on from there."""
        self.ask_to_stop()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the thread; return whether it is over."""
        return self._worker is None or self._worker.join(seconds)

    def go_to(self, node: AnyNode) -> None:
        """Make any node of the tree the present place; what follows it in the branch in view stays in view."""
        self.stop()
        self._move_to(node)

    def show_branch(self, leaf: AnyNode) -> None:
        """Go to the end of a branch."""
        self.stop()
        self.node = self.tip = leaf

    def prune(self, node: AnyNode) -> None:
        """Cut off a token and all that follows it; the present place, if it was there, moves to the token before.

        Raises:
            ValueError: for the root.
        """
        self.stop()
        with self._lock:
            self.pruned.append(self.tree.prune(node))
        assert node.parent is not None
        if node in self.node.lineage():
            self.node = node.parent
        if node in self.tip.lineage():
            self.tip = _first_leaf(node.parent)  # a branch that is still there comes into view

    def undo_prune(self) -> None:
        """Put back what was cut off last, and bring it into view."""
        self.stop()
        pruned = self.pruned.pop()
        with self._lock:
            self.tree.graft(pruned)
        self.node = self.tip = _first_leaf(pruned.node)

    def _ask(self, take: Take[AnyNode], until: float, stopping: threading.Event) -> Callable[[], bool]:
        """Ask the source for tokens after the present place, as many as it gives at a time, up to a depth.

        Returns:
            A function that waits for them, hands them to `take`, and returns whether the text can go on. It must not
            refer to the run.
        """
        raise NotImplementedError

    def _give_up(self) -> None:
        """Tell the source that what it was asked for is not wanted any more; no long time."""

    def _failure(self, error: Exception) -> Exception:
        """Return what to tell the reader of an error, without the frames, which refer to the run."""
        return error.with_traceback(None)

    def _begin(self, until: float) -> None:
        self.stop()
        self.error = None
        # A new event for each thread: one that still waits for its source must not wake to this run.
        self._stopping = threading.Event()
        reference = weakref.ref(self)
        work = functools.partial(_run, reference, self._stopping, until)
        self._worker = Worker(work, name="generation", rest=functools.partial(_rest, reference), keep=1)

    def _put(self, node: AnyNode, stopping: threading.Event | None = None) -> AnyNode | None:
        """Put a token into the tree and go there, unless the run was stopped meanwhile."""
        with self._appending:
            if stopping is not None and stopping.is_set():
                return None
            placed = self.tree.add(node)
            self._move_to(placed)
            return placed

    def _move_to(self, node: AnyNode) -> None:
        # The tip first: who reads `node` and then `tip` meanwhile never finds the place beyond the branch in view.
        if node.parent is self.tip or node not in self.tip.lineage():
            self.tip = node
        self.node = node


def _first_leaf(node: AnyNode) -> AnyNode:
    while node.children:
        node = node.children[0]
    return node


def _run(reference: weakref.ref[TextRun[Any]], stopping: threading.Event, until: float, tell: Tell[None]) -> None:
    """Append tokens until the text is long enough or ends, the run is stopped, or nobody refers to it any more."""

    def take(node: Any) -> Any:
        run = reference()
        return None if run is None else run._put(node, stopping)

    while not stopping.is_set():
        run = reference()
        if run is None or run.end or run.node.depth >= until:
            return
        try:
            wait = run._ask(take, until, stopping)
            del run
            goes_on = wait()
        except CancelledError:
            return
        except Exception as error:  # whatever it is, the reader is told; a thread has nobody else to tell
            run = reference()
            if run is not None and not stopping.is_set():
                run.error = run._failure(error)
            return
        if not goes_on:
            run = reference()
            if run is not None and not stopping.is_set():
                run.ended = run.node
            return
        tell(None)


def _rest(reference: weakref.ref[TextRun[Any]], took: float) -> float:
    """Seconds until the next token is due, after one that took so many."""
    run = reference()
    pace = 0.0 if run is None else run.tokens_per_second
    return max(1 / pace - took, BREATH) if pace else BREATH
