"""A generation one walks through: a tree, a place in it, and a thread that goes on from there until told to stop."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Literal

from lmcore.generation.stopping import StopMatch, stop_match
from lmcore.generation.tree import GenerationTree, Node, Pruned
from lmcore.language_model import LanguageModel
from lmcore.memory import SharedLimit
from lmcore.sampling import Reshaped, SamplingSettings
from lmcore.worker import BREATH, Tell, Worker

End = Literal["", "stop token", "stop string", "context full", "max_new_tokens"]


class GenerationRun:
    """Step, run, stop, go back, branch; nothing that was drawn is lost.

    The thread ends with the text, when told to stop, and when nothing refers to the run any more. The settings may be
    changed at any time, while it runs too: they hold from the next token on, and each token keeps those it was drawn
    with.

    Args:
        lm: the language model.
        ids: the prompt, at least one token and at most context_length.
        stop_ids: ids that end a text; may be changed later.
        lock: held around each step, so that several runs can share one model.
        limit: of the memory that several runs take together, see GenerationTree; they share the lock then.

    Attributes:
        tree: everything tried so far.
        node: where the next token goes.
        tip: the end of the branch in view; `node` itself, or further on after going back.
        settings: how to draw; with a seed.
        stop_ids: ids that end a text.
        stop_strings: texts that end a text, wherever the tokens' borders are.
        max_new_tokens: the most tokens after the prompt.
        use_cache: whether new logits are computed with the KV cache.
        tokens_per_second: the pace of running; 0 is as fast as it goes.
        error: what ended the last run before its time, or "".
        pruned: what was cut off, the latest last; `undo_prune` puts it back.
    """

    def __init__(
        self,
        lm: LanguageModel,
        ids: Sequence[int],
        stop_ids: Collection[int] = (),
        lock: AbstractContextManager[object] | None = None,
        limit: SharedLimit | None = None,
    ) -> None:
        self.tree = GenerationTree(lm, ids, limit)
        self.node = self.tip = self.tree.root
        self.settings = SamplingSettings(seed=0)
        self.max_new_tokens = 50
        self.use_cache = True
        self.tokens_per_second = 0.0
        self.error = ""
        self.stop_ids = frozenset(stop_ids)
        self.stop_strings: tuple[str, ...] = ()
        self.pruned: list[Pruned] = []
        self._lock: AbstractContextManager[object] = lock or nullcontext()
        self._appending = threading.Lock()  # held while a token is drawn from logits that are there: no long time
        self._worker: Worker[None] | None = None
        self._starts = 0  # a thread may append tokens until the run is stopped or started anew

    @property
    def running(self) -> bool:
        """Whether more tokens come; not from the moment on at which it was asked to stop."""
        return self._worker is not None and self._worker.running

    @property
    def end(self) -> End:
        """Why no token can follow the present place; "" when one can."""
        if self.node.token_id in self.stop_ids and self.node.parent is not None:
            return "stop token"
        if self.stop_match is not None:
            return "stop string"
        if self.tree.is_full(self.node):
            return "context full"
        return "max_new_tokens" if self.node.depth >= self.max_new_tokens else ""

    @property
    def stop_match(self) -> StopMatch | None:
        """The stop string that the token at the present place completed."""
        node = self.node
        return (
            stop_match([step.token for step in self.tree.path(node)], self.stop_strings) if self.stop_strings else None
        )

    def result(self, node: Node) -> Reshaped:
        """Return the distribution a token was drawn from.

        Raises:
            ValueError: for the root.
        """
        latest = self.tree.latest  # of a generation that runs this is the one in view, and the model need not rest
        if latest is not None and latest[0] is node:
            return latest[1]
        with self._lock:
            return self.tree.result(node)

    def next_result(self) -> Reshaped:
        """Return the distribution the next token will be drawn from.

        Raises:
            ValueError: when the context is full.
        """
        with self._lock:
            return self.tree.next_result(self.node, self.settings, self.use_cache)

    def step(self) -> None:
        """Draw one token, where one can follow."""
        self.stop()
        if not self.end:
            with self._lock:
                self._move_to(self.tree.draw(self.node, self.settings, self.use_cache))

    def start(self) -> None:
        """Run in a thread until the text ends or `stop` is called."""
        self.stop()
        self.error = ""
        # The thread holds this object for one token at a time: when its owner forgets it, the generation ends.
        reference = weakref.ref(self)
        work, rest = functools.partial(_run, reference, self._starts), functools.partial(_rest, reference)
        self._worker = Worker(work, name="generation", rest=rest, keep=1)

    def ask_to_stop(self) -> None:
        """Stop at once: no token is appended any more, even if the model is still busy with the next."""
        with self._appending:
            self._starts += 1
            if self._worker is not None:
                self._worker.stop()

    def stop(self) -> None:
        """Stop at once, and wait until the model is free again; `start` goes on from there."""
        self.ask_to_stop()
        if self._worker is not None:
            self._worker.join()

    def rest(self) -> None:
        """Stop, and take no more memory than the tokens need; `step` and `start` go on all the same."""
        self.stop()
        if self.tree.nbytes:
            with self._lock:
                self.tree.forget()

    def go_to(self, node: Node) -> None:
        """Make any node of the tree the present place; what follows it in the branch in view stays in view."""
        self.stop()
        self._move_to(node)

    def show_branch(self, leaf: Node) -> None:
        """Go to the end of a branch."""
        self.stop()
        self.node = self.tip = leaf

    def take(self, parent: Node, token_id: int) -> None:
        """Put a token of the reader's choice after a node and go on from it.

        Raises:
            ValueError: when the id is not in the vocabulary, or the context is full.
        """
        self.stop()
        with self._lock:
            self._move_to(self.tree.take(parent, token_id, self.settings, self.use_cache))

    def prune(self, node: Node) -> None:
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
            self.tip = node.parent
            while self.tip.children:  # a branch that is still there comes into view
                self.tip = self.tip.children[0]

    def undo_prune(self) -> None:
        """Put back what was cut off last, and bring it into view."""
        self.stop()
        pruned = self.pruned.pop()
        with self._lock:
            self.tree.graft(pruned)
        leaf = pruned.node
        while leaf.children:
            leaf = leaf.children[0]
        self.node = self.tip = leaf

    def _move_to(self, node: Node) -> None:
        # The tip first: who reads `node` and then `tip` meanwhile never finds the place beyond the branch in view.
        if node not in self.tip.lineage():
            self.tip = node
        self.node = node

    def _go_on(self, start: int) -> bool:
        """Draw the next token unless asked to stop meanwhile; return whether there may be another."""
        if self.end:
            return False
        try:
            with self._lock:
                node, settings, use_cache = self.node, self.settings, self.use_cache
                if self.tree.drawn(node, settings) is None:
                    self.tree.next_logits(node, use_cache)  # takes long, so that Stop does not wait for it
                with self._appending:
                    if self._starts != start:
                        return False
                    self._move_to(self.tree.draw(node, settings, use_cache))
        except Exception as error:  # whatever it is, the reader is told; a thread has nobody else to tell
            self.error = f"{type(error).__name__}: {error}"
            return False
        return True


def _run(reference: weakref.ref[GenerationRun], start: int, tell: Tell[None]) -> None:
    """Go on until the text ends, or nobody wants it any more."""
    while True:
        run = reference()
        if run is None or not run._go_on(start):
            return
        del run
        tell(None)


def _rest(reference: weakref.ref[GenerationRun], took: float) -> float:
    """Seconds until the next token is due, after one that took so many."""
    run = reference()
    pace = 0.0 if run is None else run.tokens_per_second
    return max(1 / pace - took, BREATH) if pace else BREATH
