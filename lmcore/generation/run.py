"""A generation one walks through: a local model draws, step by step or in a thread."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager

from torch import Tensor

from lmcore.constraints import Constraint, ConstraintRefused, Masking, compare
from lmcore.generation.stopping import StopMatch, stop_match
from lmcore.generation.text_run import End, Take, TextRun
from lmcore.generation.tree import GenerationTree, Node
from lmcore.language_model import LanguageModel
from lmcore.memory import SharedLimit
from lmcore.sampling import Reshaped, SamplingSettings
from lmcore.trace import Trace


class GenerationRun(TextRun[Node]):
    """A run whose tokens a local model gives; see `TextRun`.

    The settings may be changed at any time, while it runs too: they hold from the next token on, and each token keeps
    those it was drawn with.

    Args:
        lm: the language model.
        ids: the prompt, at least one token and at most context_length.
        stop_ids: ids that end a text; may be changed later.
        lock: held around each step, so that several runs can share one model.
        limit: of the memory that several runs take together, see GenerationTree; they share the lock then.

    Attributes:
        settings: how to draw; with a seed.
        stop_ids: ids that end a text.
        stop_strings: texts that end a text, wherever the tokens' borders are.
        use_cache: whether new logits are computed with the KV cache.
        constraint: what the text after the prompt has to be; None for anything.
    """

    tree: GenerationTree

    def __init__(
        self,
        lm: LanguageModel,
        ids: Sequence[int],
        stop_ids: Collection[int] = (),
        lock: AbstractContextManager[object] | None = None,
        limit: SharedLimit | None = None,
    ) -> None:
        super().__init__(GenerationTree(lm, ids, limit), lock)
        self.settings = SamplingSettings(seed=0)
        self.use_cache = True
        self.stop_ids = frozenset(stop_ids)
        self.stop_strings: tuple[str, ...] = ()
        self.constraint: Constraint | None = None

    @property
    def end(self) -> End:
        """Why no token can follow the present place; "" when one can."""
        if self.node.token_id in self.stop_ids and self.node.parent is not None:
            return "stop token"
        if self.stop_match is not None:
            return "stop string"
        if self.tree.is_full(self.node):
            return "context full"
        return super().end or ("constraint" if self.refusal is not None else "")

    @property
    def refusal(self) -> ConstraintRefused | None:
        """Why the constraint lets no token follow the present place; None where one can."""
        try:
            if self.constraint is not None:
                self.tree.allowed(self.node, self.constraint)
        except ConstraintRefused as refused:
            return refused
        return None

    @property
    def stop_match(self) -> StopMatch | None:
        """The stop string that the token at the present place completed."""
        return stop_match([step.token for step in self.node.path()], self.stop_strings) if self.stop_strings else None

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
            return self.tree.next_result(self.node, self.settings, self.use_cache, self.constraint)

    def masking(self, node: Node | None) -> Masking | None:
        """Return what a constraint did to the distribution of a token, or with None of the next one.

        Returns:
            None where the token was not drawn under a constraint.

        Raises:
            ValueError: for the root, or when nothing can follow the present place.
        """
        if node is not None and node.parent is None:
            raise ValueError("the root stands for the prompt, which was not drawn; ask for a token after it.")
        parent, asked = (self.node, self) if node is None else (node.parent, node)
        use_cache = self.use_cache if node is None else node.used_cache
        if asked.constraint is None or asked.settings is None or parent is None:
            return None
        with self._lock:
            allowed = self.tree.allowed(parent, asked.constraint)
            logits = self.tree.next_logits(parent, use_cache)
        return compare(logits, allowed, asked.settings, self.tree.history(parent), parent.state)

    def next_logits(self, node: Node) -> Tensor:
        """Return the logits [vocab_size] of the token after a node; never change them in place.

        Raises:
            ValueError: when the context is full.
        """
        with self._lock:
            return self.tree.next_logits(node)

    def traced(self, node: Node, prompt: Callable[[], Trace]) -> tuple[Tensor, Trace]:
        """Return the logits [vocab_size] of the token after a node, and a trace of the last tokens up to it.

        Args:
            node: a token of the tree.
            prompt: gives the trace of a pass over the prompt; asked for only if none of it is in the KV cache.

        Raises:
            ValueError: when the context is full.
        """
        with self._lock:
            self.tree.begin(prompt)
            return self.tree.traced(node)

    def step(self) -> None:
        """Draw one token, where one can follow, and return when it is there."""
        self.stop()
        if not self.end:
            self._ask(self._put, self.node.depth + 1, self._stopping)()

    def stop(self) -> None:
        """Stop at once, and wait until the model is free again; `start` goes on from there."""
        self.ask_to_stop()
        self.wait()

    def rest(self) -> None:
        """Stop, and take no more memory than the tokens need; `step` and `start` go on all the same."""
        self.stop()
        if self.tree.nbytes:
            with self._lock:
                self.tree.forget()

    def take(self, parent: Node, token_id: int) -> None:
        """Put a token of the reader's choice after a node and go on from it.

        Raises:
            ValueError: when the id is not in the vocabulary, the context is full, or the constraint allows nothing.
        """
        self.stop()
        with self._lock:
            self._move_to(self.tree.take(parent, token_id, self.settings, self.use_cache, self.constraint))

    def replay(self, token_ids: Sequence[int]) -> None:
        """Go to these tokens after the prompt, as far as a text can have them.

        A token that the settings draw there is drawn; another one is put there as if by hand.

        Raises:
            ValueError: for an id outside the vocabulary.
        """
        self.stop()
        with self._lock:
            self.tree.look_ahead(self.tree.root, token_ids)
            self._move_to(self.tree.root)
            for token_id in token_ids:
                if self.end:
                    break
                node = self.tree.next_node(self.node, self.settings, self.use_cache, self.constraint)
                if node.token_id == token_id:
                    self._move_to(self.tree.add(node))
                else:
                    taken = self.tree.take(self.node, token_id, self.settings, self.use_cache, self.constraint)
                    self._move_to(taken)

    def _ask(self, take: Take[Node], until: float, stopping: threading.Event) -> Callable[[], bool]:
        asked = (self.settings, self.use_cache, self.constraint)
        return functools.partial(_draw_one, self.tree, self.node, asked, self._lock, take)


def _draw_one(
    tree: GenerationTree,
    node: Node,
    asked: tuple[SamplingSettings, bool, Constraint | None],
    lock: AbstractContextManager[object],
    take: Take[Node],
) -> bool:
    with lock:
        take(tree.next_node(node, *asked))
    return True
