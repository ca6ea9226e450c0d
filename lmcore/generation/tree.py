"""Generation that can be taken back: every continuation of a prompt that was tried, as a tree of tokens.

`generate` walks one line; here each token can be followed by several others, drawn or taken by hand, and any of them
can be gone on from. Three rules make the text a function of what was chosen, never of what was looked at:

- The n-th token after the prompt is drawn with the n-th number of its seed's stream, whether the tokens before it came
  one by one, in a run, or after going back; a token taken by hand leaves its number unused. From the prompt on this
  draws the text that `generate` draws.
- The logits after a token are computed once and kept, so going back and on again meets the same numbers.
- Drawing again what is already there walks to it instead of adding a copy.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from lmcore.kv_cache import KVCache
from lmcore.language_model import LanguageModel
from lmcore.sampling import History, Reshaped, SamplingSettings, draw, new_generator, reshape


@dataclass(frozen=True, eq=False)
class NextLogits:
    """Logits [vocab_size] of the token after a node, and the seconds the model took for them."""

    logits: Tensor
    seconds: float


@dataclass(eq=False)
class Node:
    """One token of the tree; the root stands for the whole prompt and has no token.

    Attributes:
        parent: the node before; None for the root.
        token_id: the token; -1 for the root.
        token: its bytes.
        result: the distribution it was drawn from, with the settings; None for the root.
        by_hand: whether it was taken by hand instead of drawn.
        seconds: what the model took for its logits when it was added.
        used_cache: whether they were computed with the KV cache.
        children: what followed, in the order it was tried.
    """

    parent: Node | None
    token_id: int = -1
    token: bytes = b""
    result: Reshaped | None = None
    by_hand: bool = False
    seconds: float = 0.0
    used_cache: bool = True
    children: list[Node] = field(default_factory=list)
    following: dict[bool, NextLogits] = field(default_factory=dict, repr=False)

    @property
    def prob(self) -> float:
        """The probability the token had when it was drawn; 0 if it was taken by hand from those removed."""
        return 1.0 if self.result is None else float(self.result.probs[self.token_id])

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


class GenerationTree:
    """All continuations of one prompt.

    Args:
        lm: the language model.
        ids: the prompt, at least one token and at most context_length.

    Raises:
        ValueError: for a prompt that is empty or too long.
    """

    def __init__(self, lm: LanguageModel, ids: Sequence[int]) -> None:
        if not 1 <= len(ids) <= lm.config.context_length:
            raise ValueError(
                f"the prompt has {len(ids)} tokens; generation needs 1 to context_length = {lm.config.context_length}."
            )
        self.lm = lm
        self.prompt_ids = tuple(map(int, ids))
        self.root = Node(None)
        self._cache: KVCache | None = None
        self._cached_ids: list[int] = []

    def path(self, node: Node) -> list[Node]:
        """Return the nodes from the first token after the prompt to this one."""
        return list(node.lineage())[-2::-1]

    def ids(self, node: Node) -> list[int]:
        """Return the ids of the prompt and the path to a node."""
        return [*self.prompt_ids, *(step.token_id for step in self.path(node))]

    def leaves(self) -> list[Node]:
        """Return the ends of all branches, in the order in which the branches were begun."""
        found, waiting = [], [self.root]
        while waiting:
            node = waiting.pop()
            waiting.extend(reversed(node.children))
            if not node.children:
                found.append(node)
        return found

    def is_full(self, node: Node) -> bool:
        """Whether the context is full, so that the model cannot be asked what comes after this node."""
        return len(self.prompt_ids) + node.depth > self.lm.config.context_length

    def next_result(self, node: Node, settings: SamplingSettings, use_cache: bool = True) -> Reshaped:
        """Return the distribution of the token after a node.

        Raises:
            ValueError: when the context is full.
        """
        generated = [step.token_id for step in self.path(node)]
        logits = self._next_logits(node, use_cache).logits
        return reshape(logits, settings, History(self.prompt_ids, generated))

    def draw(self, node: Node, settings: SamplingSettings, use_cache: bool = True) -> Node:
        """Draw the token after a node and return its node.

        Raises:
            ValueError: when the settings have no seed, or the context is full.
        """
        if settings.seed is None:
            raise ValueError("seed is None; a tree needs a seed, so that going back and on gives the same text.")
        generator = new_generator(settings.seed)
        torch.rand(node.depth, dtype=torch.float64, generator=generator)  # the numbers of the tokens before
        result = self.next_result(node, settings, use_cache)
        return self._child(node, draw(result, generator), result, use_cache, by_hand=False)

    def take(self, node: Node, token_id: int, settings: SamplingSettings, use_cache: bool = True) -> Node:
        """Put a token of the reader's choice after a node and return its node; any id of the vocabulary will do.

        Raises:
            ValueError: when the id is not in the vocabulary, or the context is full.
        """
        self.lm.tokenizer.token_bytes(token_id)  # refuses what is no id
        result = self.next_result(node, settings, use_cache)
        return self._child(node, token_id, result, use_cache, by_hand=True)

    def _child(self, node: Node, token_id: int, result: Reshaped, use_cache: bool, by_hand: bool) -> Node:
        for child in node.children:
            if child.token_id == token_id and child.result is not None and child.result.settings == result.settings:
                return child
        seconds = node.following[use_cache].seconds
        token = self.lm.tokenizer.token_bytes(token_id)
        child = Node(node, token_id, token, result, by_hand, seconds, use_cache)
        node.children.append(child)
        return child

    def _next_logits(self, node: Node, use_cache: bool) -> NextLogits:
        if use_cache not in node.following:
            ids = self.ids(node)
            started = time.perf_counter()
            logits = self._with_cache(ids) if use_cache else self.lm(ids)[-1]
            # A copy: one row of [S, V] would keep all of it in memory.
            node.following[use_cache] = NextLogits(logits.clone(), time.perf_counter() - started)
        return node.following[use_cache]

    def _with_cache(self, ids: list[int]) -> Tensor:
        """Compute the last logits, with the keys and values of the beginning shared with the ids before."""
        if self._cache is None:
            self._cache = self.lm.new_cache()
        common = 0
        while common < min(len(self._cached_ids), len(ids) - 1) and self._cached_ids[common] == ids[common]:
            common += 1
        self._cache.truncate(common)
        logits = self.lm(ids[common:], cache=self._cache)[-1]
        self._cached_ids = ids
        return logits


def repeated_tail(ids: Iterable[int], times: int = 3) -> int:
    """Return how many tokens the text's end repeats over and over; 0 when it does not.

    Args:
        ids: the tokens.
        times: how often in a row the same tokens must have come.

    Returns:
        The shortest period p such that the last `times * p` tokens are one run of p tokens repeated.

    >>> repeated_tail([5, 1, 2, 1, 2, 1, 2]), repeated_tail([1, 2, 3])
    (2, 0)
    """
    tail = list(ids)
    for period in range(1, len(tail) // times + 1):
        end = tail[len(tail) - times * period :]
        if end == end[:period] * times:
            return period
    return 0
