"""The texts that a local model continues a prompt to: a tree of tokens, each with all that it was drawn from.

`generate` walks one line; here each token can be followed by several others, drawn or taken by hand, and any of them
can be gone on from. Three rules make the text a function of what was chosen, never of what was looked at:

- The n-th token after the prompt is drawn with the n-th number of its seed's stream, whether the tokens before it came
  one by one, in a run, or after going back; a token taken by hand leaves its number unused. From the prompt on this
  draws the text that `generate` draws.
- Drawing again what is already there walks to it instead of adding a copy.
- A token keeps the settings it was drawn with; its whole distribution is made again from these when asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from lmcore import distribution
from lmcore.constraints import Constraint, Masks
from lmcore.generation.logits_store import LogitsStore
from lmcore.generation.text_tree import Pruned, TextNode, TextTree
from lmcore.language_model import LanguageModel
from lmcore.memory import SharedLimit
from lmcore.sampling import History, Reshaped, SamplingSettings, State, draw, new_generator, reshape
from lmcore.trace import Trace

__all__ = ["GenerationTree", "Node", "Pruned"]

_MAX_MASKS = 4  # constraints that are kept ready


@dataclass(eq=False, slots=True)
class Node(TextNode):
    """One token that a local model gave, or that was taken from what it gave; see `TextNode` for the rest.

    Attributes:
        token_id: the token; -1 for the root.
        prob: the probability it was drawn with; 0 if it was taken by hand from those removed; 1 for the root.
        candidates: how many tokens could be drawn.
        seconds: what the model took for its logits when it was added; 0 when that was not measured.
        used_cache: whether they were computed with the KV cache.
        state: what stages such as mirostat carry on to the next token; empty where none does.
        constraint: what the text had to be when it was added; None for anything.
        forbidden: the model's probability, at temperature 1, of the tokens that the constraint did not allow here.
    """

    token_id: int = -1
    settings: SamplingSettings | None = None
    log_prob: float = 0.0
    rank: int = 0
    prob: float = 1.0
    candidates: int = 0
    seconds: float = 0.0
    used_cache: bool = True
    state: State = field(default_factory=dict, repr=False)
    constraint: Constraint | None = None
    forbidden: float = 0.0

    def asked(self) -> tuple[Any, ...]:
        """Return what the token is and all that it was drawn with, the constraint too."""
        return self.token_id, self.settings, self.constraint


class GenerationTree(TextTree[Node]):
    """All continuations of one prompt by a local model.

    Args:
        lm: the language model.
        ids: the prompt, at least one token and at most context_length.
        limit: of the memory that this and other trees take together for what can be computed again.

    Attributes:
        latest: the node drawn last, and the distribution it was drawn from.

    Raises:
        ValueError: for a prompt that is empty or too long.
    """

    def __init__(self, lm: LanguageModel, ids: Sequence[int], limit: SharedLimit | None = None) -> None:
        if not 1 <= len(ids) <= lm.config.context_length:
            raise ValueError(
                f"the prompt has {len(ids)} tokens; generation needs 1 to context_length = {lm.config.context_length}."
            )
        super().__init__(Node(None))
        self.lm = lm
        self.prompt_ids = tuple(map(int, ids))
        self.latest: tuple[Node, Reshaped] | None = None
        self._store = LogitsStore(lm)
        self._limit = limit
        self._masks: dict[Constraint, Masks] = {}  # the latest last

    @property
    def nbytes(self) -> int:
        """Bytes of memory taken for what can be computed again; a distribution counts as three rows of float64."""
        return self._store.nbytes + (0 if self.latest is None else 3 * 8 * self.lm.config.vocab_size)

    def forget(self) -> None:
        """Give up what can be computed again; the tokens stay."""
        self.latest = None
        self._store.forget()

    def ids(self, node: Node) -> list[int]:
        """Return the ids of the prompt and the path to a node."""
        return [*self.prompt_ids, *(step.token_id for step in node.path())]

    def is_full(self, node: Node) -> bool:
        """Whether the context is full, so that the model cannot be asked what comes after this node."""
        return len(self.prompt_ids) + node.depth > self.lm.config.context_length

    def next_logits(self, node: Node, use_cache: bool = True) -> Tensor:
        """Return the logits [vocab_size] of the token after a node; never change them in place.

        Raises:
            ValueError: when the context is full.
        """
        logits = self._store.get(self.ids(node), use_cache).logits
        self._take_note()
        return logits

    def allowed(self, node: Node, constraint: Constraint) -> Tensor:
        """Return the mask [vocab_size] of the tokens that a constraint allows after a node.

        Raises:
            ConstraintRefused: a sentence that says why nothing can follow.
        """
        if constraint not in self._masks:
            for old in list(self._masks)[: 1 - _MAX_MASKS]:
                self._masks.pop(old, None)
            self._masks[constraint] = Masks(constraint, self.lm.tokenizer, self.lm.end_tokens)
        return self._masks[constraint].allowed([step.token_id for step in node.path()])

    def next_result(
        self, node: Node, settings: SamplingSettings, use_cache: bool = True, constraint: Constraint | None = None
    ) -> Reshaped:
        """Return the distribution of the token after a node.

        Raises:
            ValueError: when the context is full, or the constraint allows nothing.
        """
        allowed = None if constraint is None else self.allowed(node, constraint)
        retries = constraint is not None and constraint.retries
        return reshape(self.next_logits(node, use_cache), settings, self.history(node), node.state, allowed, retries)

    def history(self, node: Node) -> History:
        """Return the tokens up to a node, as stages that look at them need them."""
        return History(self.prompt_ids, [step.token_id for step in node.path()])

    def result(self, node: Node) -> Reshaped:
        """Return the distribution a token was drawn from, with the settings it was drawn with.

        Raises:
            ValueError: for the root, which was not drawn.
        """
        if node.parent is None or node.settings is None:
            raise ValueError("the root stands for the prompt, which was not drawn; ask for a token after it.")
        return self.next_result(node.parent, node.settings, node.used_cache, node.constraint)

    def draw(
        self, node: Node, settings: SamplingSettings, use_cache: bool = True, constraint: Constraint | None = None
    ) -> Node:
        """Draw the token after a node and return its node.

        Raises:
            ValueError: when the settings have no seed, the context is full, or the constraint allows nothing.
        """
        return self.add(self.next_node(node, settings, use_cache, constraint))

    def next_node(
        self, node: Node, settings: SamplingSettings, use_cache: bool = True, constraint: Constraint | None = None
    ) -> Node:
        """Return the token that `draw` puts after a node: one for `add` to put there, unless it is there already."""
        if settings.seed is None:
            raise ValueError("seed is None; a tree needs a seed, so that going back and on gives the same text.")
        if (known := self.drawn(node, settings, constraint)) is not None:
            return known
        generator = new_generator(settings.seed)
        torch.rand(node.depth, dtype=torch.float64, generator=generator)  # the numbers of the tokens before
        result = self.next_result(node, settings, use_cache, constraint)
        return self._after(node, draw(result, generator), result, use_cache, False, constraint)

    def drawn(self, node: Node, settings: SamplingSettings, constraint: Constraint | None = None) -> Node | None:
        """Return the token drawn after a node with these settings, if that has been done."""
        asked = (settings, constraint)
        same = (each for each in node.children if (each.settings, each.constraint) == asked and not each.by_hand)
        return next(same, None)

    def take(
        self,
        node: Node,
        token_id: int,
        settings: SamplingSettings,
        use_cache: bool = True,
        constraint: Constraint | None = None,
    ) -> Node:
        """Put a token of the reader's choice after a node and return its node; any id of the vocabulary will do.

        Raises:
            ValueError: when the id is not in the vocabulary, the context is full, or the constraint allows nothing.
        """
        return self.put(node, token_id, settings, True, use_cache, constraint)

    def put(
        self,
        node: Node,
        token_id: int,
        settings: SamplingSettings,
        by_hand: bool,
        used_cache: bool,
        constraint: Constraint | None = None,
    ) -> Node:
        """Put back a token of which the settings are known, as a file tells them; its numbers are computed anew."""
        self.lm.tokenizer.token_bytes(token_id)  # refuses what is no id
        result = self.next_result(node, settings, used_cache, constraint)
        return self.add(self._after(node, token_id, result, used_cache, by_hand, constraint))

    def know(self, node: Node, logits: Tensor) -> None:
        """Take over the logits [vocab_size] of the token after a node from a pass that was needed anyway."""
        self._store.put(self.ids(node), logits)

    def begin(self, trace: Callable[[], Trace]) -> None:
        """Take over the prompt's keys and values from a traced pass over it; asked for only if they are not cached."""
        self._store.begin(self.prompt_ids, trace)

    def traced(self, node: Node) -> tuple[Tensor, Trace]:
        """Return the logits [vocab_size] of the token after a node, and a trace of the last tokens up to it.

        Only what is not in the KV cache is computed, and the very last token.

        Raises:
            ValueError: when the context is full.
        """
        found = self._store.traced(self.ids(node))
        self._take_note()
        return found

    def look_ahead(self, node: Node, token_ids: Sequence[int]) -> None:
        """Compute in one pass the logits after a node and after each of the tokens that are to follow it.

        Of these, `farthest_look` are kept.
        """
        self._store.fill(self.ids(node), token_ids)

    @property
    def farthest_look(self) -> int:
        """How many rows of logits are kept at a time."""
        return self._store.max_rows

    def _take_note(self) -> None:
        if self._limit is not None:
            self._limit.used(self)

    def _after(
        self,
        node: Node,
        token_id: int,
        result: Reshaped,
        use_cache: bool,
        by_hand: bool,
        constraint: Constraint | None,
    ) -> Node:
        """Make a node with the numbers of a token after `node`."""
        following = self._store.get(self.ids(node), use_cache)
        found = Node(
            parent=node,
            token_id=token_id,
            token=self.lm.tokenizer.token_bytes(token_id),
            settings=result.settings,
            by_hand=by_hand,
            prob=float(result.probs[token_id]),
            log_prob=-float(distribution.loss_nats(following.logits, token_id)),
            rank=distribution.rank(following.logits, token_id),
            candidates=result.candidates,
            seconds=following.seconds,
            used_cache=use_cache,
            state=result.next_state(token_id),
            constraint=constraint,
            forbidden=0.0 if result.allowed is None else float(result.initial_probs[~result.allowed].sum()),
        )
        self.latest = (found, result)
        self._take_note()
        return found
