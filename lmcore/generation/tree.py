"""Generation that can be taken back: every continuation of a prompt that was tried, as a tree of tokens.

`generate` walks one line; here each token can be followed by several others, drawn or taken by hand, and any of them
can be gone on from. Three rules make the text a function of what was chosen, never of what was looked at:

- The n-th token after the prompt is drawn with the n-th number of its seed's stream, whether the tokens before it came
  one by one, in a run, or after going back; a token taken by hand leaves its number unused. From the prompt on this
  draws the text that `generate` draws.
- Drawing again what is already there walks to it instead of adding a copy.
- A token keeps the settings it was drawn with; its whole distribution is made again from these when asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from lmcore import distribution
from lmcore.generation.logits_store import LogitsStore
from lmcore.language_model import LanguageModel
from lmcore.memory import SharedLimit
from lmcore.sampling import History, Reshaped, SamplingSettings, State, draw, new_generator, reshape


@dataclass(eq=False)
class Node:
    """One token of the tree; the root stands for the whole prompt and has no token.

    Attributes:
        parent: the node before; None for the root.
        token_id: the token; -1 for the root.
        token: its bytes.
        settings: what it was drawn with; None for the root.
        by_hand: whether it was taken by hand instead of drawn.
        prob: the probability it was drawn with; 0 if it was taken by hand from those removed; 1 for the root.
        log_prob: ln of its probability under the model itself, at temperature 1; 0 for the root.
        rank: its rank under the model itself, 1 for the most probable token; 0 for the root.
        candidates: how many tokens could be drawn.
        seconds: what the model took for its logits when it was added; 0 when that was not measured.
        used_cache: whether they were computed with the KV cache.
        name: what the reader calls the branch that passes here; "" for no name.
        state: what stages such as mirostat carry on to the next token; empty where none does.
        children: what followed, in the order it was tried.
    """

    parent: Node | None
    token_id: int = -1
    token: bytes = b""
    settings: SamplingSettings | None = None
    by_hand: bool = False
    prob: float = 1.0
    log_prob: float = 0.0
    rank: int = 0
    candidates: int = 0
    seconds: float = 0.0
    used_cache: bool = True
    name: str = ""
    state: State = field(default_factory=dict, repr=False)
    children: list[Node] = field(default_factory=list, repr=False)

    @property
    def depth(self) -> int:
        """How many tokens after the prompt this is; 0 for the root."""
        return sum(1 for _node in self.lineage()) - 1

    def lineage(self) -> Iterator[Node]:
        """Iterate from this node back to the root."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.parent


@dataclass(frozen=True, eq=False)
class Pruned:
    """What was cut off, and where it was: `GenerationTree.graft` puts it back."""

    node: Node
    index: int


class GenerationTree:
    """All continuations of one prompt.

    Args:
        lm: the language model.
        ids: the prompt, at least one token and at most context_length.
        limit: of the memory that this and other trees take together for what can be computed again.

    Attributes:
        root: the node that stands for the prompt.
        latest: the node added last, and the distribution it was drawn from.

    Raises:
        ValueError: for a prompt that is empty or too long.
    """

    def __init__(self, lm: LanguageModel, ids: Sequence[int], limit: SharedLimit | None = None) -> None:
        if not 1 <= len(ids) <= lm.config.context_length:
            raise ValueError(
                f"the prompt has {len(ids)} tokens; generation needs 1 to context_length = {lm.config.context_length}."
            )
        self.lm = lm
        self.prompt_ids = tuple(map(int, ids))
        self.root = Node(None)
        self.latest: tuple[Node, Reshaped] | None = None
        self._store = LogitsStore(lm)
        self._limit = limit

    @property
    def nbytes(self) -> int:
        """Bytes of memory taken for what can be computed again; a distribution counts as three rows of float64."""
        return self._store.nbytes + (0 if self.latest is None else 3 * 8 * self.lm.config.vocab_size)

    def forget(self) -> None:
        """Give up what can be computed again; the tokens stay."""
        self.latest = None
        self._store.forget()

    def path(self, node: Node) -> list[Node]:
        """Return the nodes from the first token after the prompt to this one."""
        return list(node.lineage())[-2::-1]

    def ids(self, node: Node) -> list[int]:
        """Return the ids of the prompt and the path to a node."""
        return [*self.prompt_ids, *(step.token_id for step in self.path(node))]

    def nodes(self) -> list[Node]:
        """Return all nodes, the root first, parents before their children, a branch at a time."""
        found, waiting = [], [self.root]
        while waiting:
            found.append(node := waiting.pop())
            waiting.extend(reversed(node.children))
        return found

    def leaves(self) -> list[Node]:
        """Return the ends of all branches, in the order in which the branches were begun."""
        return [node for node in self.nodes() if not node.children]

    def branch_start(self, leaf: Node) -> Node:
        """Return the first node that belongs to this branch alone; the root in a tree of one branch without tokens."""
        node = leaf
        while node.parent is not None and node.parent.parent is not None and len(node.parent.children) == 1:
            node = node.parent
        return node

    def branch_name(self, leaf: Node) -> str:
        """Return what the reader calls a branch: the last name given on the part that belongs to it alone."""
        start = self.branch_start(leaf)
        for node in leaf.lineage():
            if node.name or node is start:
                return node.name
        return ""

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

    def next_result(self, node: Node, settings: SamplingSettings, use_cache: bool = True) -> Reshaped:
        """Return the distribution of the token after a node.

        Raises:
            ValueError: when the context is full.
        """
        generated = [step.token_id for step in self.path(node)]
        history = History(self.prompt_ids, generated)
        return reshape(self.next_logits(node, use_cache), settings, history, node.state)

    def result(self, node: Node) -> Reshaped:
        """Return the distribution a token was drawn from, with the settings it was drawn with.

        Raises:
            ValueError: for the root, which was not drawn.
        """
        if node.parent is None or node.settings is None:
            raise ValueError("the root stands for the prompt, which was not drawn; ask for a token after it.")
        return self.next_result(node.parent, node.settings, node.used_cache)

    def draw(self, node: Node, settings: SamplingSettings, use_cache: bool = True) -> Node:
        """Draw the token after a node and return its node.

        Raises:
            ValueError: when the settings have no seed, or the context is full.
        """
        if settings.seed is None:
            raise ValueError("seed is None; a tree needs a seed, so that going back and on gives the same text.")
        if (known := self.drawn(node, settings)) is not None:
            return known
        generator = new_generator(settings.seed)
        torch.rand(node.depth, dtype=torch.float64, generator=generator)  # the numbers of the tokens before
        result = self.next_result(node, settings, use_cache)
        return self._child(node, draw(result, generator), result, use_cache, by_hand=False)

    def drawn(self, node: Node, settings: SamplingSettings) -> Node | None:
        """Return the token drawn after a node with these settings, if that has been done."""
        return next((child for child in node.children if child.settings == settings and not child.by_hand), None)

    def take(self, node: Node, token_id: int, settings: SamplingSettings, use_cache: bool = True) -> Node:
        """Put a token of the reader's choice after a node and return its node; any id of the vocabulary will do.

        Raises:
            ValueError: when the id is not in the vocabulary, or the context is full.
        """
        self.lm.tokenizer.token_bytes(token_id)  # refuses what is no id
        result = self.next_result(node, settings, use_cache)
        return self._child(node, token_id, result, use_cache, by_hand=True)

    def put(self, node: Node, token_id: int, settings: SamplingSettings, by_hand: bool, used_cache: bool) -> Node:
        """Put back a token of which the settings are known, as a file tells them; its numbers are computed anew."""
        result = self.next_result(node, settings, used_cache)
        return self._child(node, token_id, result, used_cache, by_hand)

    def know(self, node: Node, logits: Tensor) -> None:
        """Take over the logits [vocab_size] of the token after a node from a pass that was needed anyway."""
        self._store.put(self.ids(node), logits)

    def look_ahead(self, node: Node, token_ids: Sequence[int]) -> None:
        """Compute in one pass the logits after a node and after each of the tokens that are to follow it.

        Of these, `farthest_look` are kept.
        """
        self._store.fill(self.ids(node), token_ids)

    @property
    def farthest_look(self) -> int:
        """How many rows of logits are kept at a time."""
        return self._store.max_rows

    def prune(self, node: Node) -> Pruned:
        """Cut off a node and all that follows it.

        Raises:
            ValueError: for the root.
        """
        if node.parent is None:
            raise ValueError("the root stands for the prompt and cannot be pruned.")
        index = node.parent.children.index(node)
        del node.parent.children[index]
        return Pruned(node, index)

    def graft(self, pruned: Pruned) -> None:
        """Put back what `prune` cut off."""
        assert pruned.node.parent is not None
        pruned.node.parent.children.insert(pruned.index, pruned.node)

    def _take_note(self) -> None:
        if self._limit is not None:
            self._limit.used(self)

    def _child(self, node: Node, token_id: int, result: Reshaped, use_cache: bool, by_hand: bool) -> Node:
        for child in node.children:
            if child.token_id == token_id and child.settings == result.settings:
                return child
        following = self._store.get(self.ids(node), use_cache)
        child = Node(
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
        )
        node.children.append(child)
        self.latest = (child, result)
        self._take_note()
        return child
