"""Which tensors make the difference between two models of one shape: B's are swapped for A's, a few at a time.

Everything is measured with A's own code, config and arithmetic: A with B's tensors, its KV cache as precise as B's, is
as far from A as these make it, and with all of A's back it is A, exactly. What B's config or its dtype of arithmetic
adds to that is `Swap.kl` of "as it runs", the first that is told, against "weights", the second.

The KV cache is a part too, although no file holds it: with A's keys and values in place of B's own, each position of B
reads what A knew of the text before it, and only its queries, its MLPs and its head are B's.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.func import functional_call

from lmcore.attention import Attention
from lmcore.checkpoints.weights import own_tensors
from lmcore.language_model import LanguageModel, as_ids
from lmcore.trace import Edit, Trace

__all__ = ["AS_IT_RUNS", "EVERYTHING", "KV_CACHE", "WEIGHTS", "Swap", "check_shapes", "count_swaps", "swaps"]

AS_IT_RUNS, WEIGHTS, EVERYTHING = "as it runs", "weights", "everything"
"""The kinds that are no tensors: B itself; B's weights and cache in A; A's own in A, which is 0."""
KV_CACHE = "kv_cache"
"""The kind of the keys and values of all positions, as the cache gives them back."""

_OUTSIDE = -1  # the block of what lies in none


class Swap(NamedTuple):
    """What is left of the difference once some of B's tensors are A's.

    Attributes:
        kind: which: "attn.q", "mlp.up", "head", "kv_cache" ...; "" for all tensors of a block.
        block: which block; None for all blocks, or for what lies in none.
        kl: KL(A‖B) in bits after it, the mean over all positions.
        gone: the share of the weights' KL that went, 1 for all; below 0 where the swap makes it larger. NaN where there
            is nothing to go.
    """

    kind: str
    block: int | None
    kl: float
    gone: float


def swaps(a: LanguageModel, b: LanguageModel, ids: Sequence[int]) -> Iterator[Swap]:
    """Yield what each swap leaves: B as it runs, B's weights, everything; the KV cache, whole and of each block; each
    kind of tensors, each block, each kind in a block.

    Tensors that are equal already are not swapped: they leave all of it.

    Args:
        a: the model whose distribution is the reference.
        b: the model whose tensors are replaced.
        ids: the text, whose positions are averaged over.

    Raises:
        ValueError: the two have other tensors or other shapes.

    >>> import lmcore
    >>> a, b = lmcore.load("small-world"), lmcore.load("small-world:bfloat16")
    >>> everything = next(swap for swap in swaps(a, b, [5, 6]) if swap.kind == "everything")
    >>> everything.kl, everything.gone
    (0.0, 1.0)
    """
    check_shapes(a, b)
    mine, theirs = (own_tensors(lm.model) for lm in (a, b))
    given = as_ids(ids)
    wide = torch.promote_types(_dtype(mine), _dtype(theirs))
    mine, theirs = ({name: x.detach().to(wide) for name, x in side.items()} for side in (mine, theirs))
    own, other = (lm.config.int8_cache for lm in (a, b))
    measure = _Measure(a, given, mine)
    differing = [name for name in mine if not torch.equal(mine[name], theirs[name])]
    yield Swap(AS_IT_RUNS, None, measure.kl_of(b(given)), math.nan)
    whole = measure.kl(theirs, other)
    yield Swap(WEIGHTS, None, whole, 0.0 if whole else math.nan)
    yield Swap(EVERYTHING, None, measure.kl(mine, own), 1.0 if whole else math.nan)
    for block in (None, *range(a.config.n_layers)):
        left = measure.kl(theirs, other, range(a.config.n_layers) if block is None else (block,))
        yield Swap(KV_CACHE, block, left, 1 - left / whole if whole else math.nan)
    for kind, block, names in _groups(list(mine)):
        changed = [name for name in names if name in differing]
        left = measure.kl({**theirs, **{name: mine[name] for name in changed}}, other) if changed else whole
        yield Swap(kind, block, left, 1 - left / whole if whole else math.nan)


def count_swaps(lm: LanguageModel) -> int:
    """Return how many swaps `swaps` yields for models of this shape."""
    return 3 + 1 + lm.config.n_layers + len(_groups(list(own_tensors(lm.model))))


class _Measure:
    """KL(A‖A with other tensors) over a text; the same tensors give 0 exactly."""

    def __init__(self, a: LanguageModel, ids: Tensor, mine: Mapping[str, Tensor]) -> None:
        # Of its own, sharing the tensors: functional_call changes the module that others read meanwhile.
        self._model = copy.deepcopy(a.model, {id(x): x for x in (*a.model.parameters(), *a.model.buffers())})
        self._ids = ids
        self._keys_and_values: dict[str, Tensor] = {}  # A's, by what they are and the block: "k 0"
        self._log_probs = self._read(mine, a.config.int8_cache, keep=True)
        self._probs = self._log_probs.exp()

    def kl(self, tensors: Mapping[str, Tensor], int8_cache: bool, blocks: Sequence[int] = ()) -> float:
        """Return it with A's keys and values in some blocks, with these tensors, and with a cache of 8 bits or not."""
        return self._from(self._read(tensors, int8_cache, blocks))

    def kl_of(self, logits: Tensor) -> float:
        return self._from(torch.log_softmax(logits.double(), -1))

    def _from(self, log_probs: Tensor) -> float:
        with torch.inference_mode():
            total = (self._probs * (self._log_probs - log_probs)).sum(-1).mean()
        return max(float(total), 0.0) / math.log(2)

    def _read(
        self, tensors: Mapping[str, Tensor], int8_cache: bool, blocks: Sequence[int] = (), keep: bool = False
    ) -> Tensor:
        with torch.inference_mode():
            for part in self._model.modules():
                if isinstance(part, Attention):
                    part.int8_cache = int8_cache
            edits: dict[str, Edit] = {}
            for name in self._cached() if keep or blocks else ():
                _blocks, number, _attn, intermediate = name.split(".")
                key = f"{intermediate[0]} {number}"
                if keep:
                    edits[name] = functools.partial(self._keep, key)
                elif int(number) in blocks:
                    edits[name] = functools.partial(self._give, key)
            logits = functional_call(self._model, dict(tensors), (self._ids,), {"edits": edits})
            return torch.log_softmax(logits.double(), -1)

    def _cached(self) -> list[str]:
        """Return the names of the keys and values that the cache gives back, in the model as it is now."""
        trace = Trace()
        self._model(self._ids[:1], trace=trace)
        found = []
        for block in range(len(self._model.blocks)):
            for each in ("k", "v"):
                steps = [f"blocks.{block}.attn.{each}{step}" for step in ("_kept", "_rotated", "_normed", "")]
                found.append(next(name for name in steps if name in trace))
        return found

    def _keep(self, key: str, x: Tensor) -> Tensor:
        self._keys_and_values[key] = x
        return x

    def _give(self, key: str, _x: Tensor) -> Tensor:
        return self._keys_and_values[key]


def check_shapes(a: LanguageModel, b: LanguageModel) -> None:
    """Check that two models have the same tensors.

    Raises:
        ValueError: they have not; the sentence names the first that differs.
    """
    mine, theirs = (own_tensors(lm.model) for lm in (a, b))
    for name in (*mine, *theirs):
        left, right = (list(side[name].shape) if name in side else None for side in (mine, theirs))
        if left != right:
            raise ValueError(
                f"{name} has shape {left or 'none'} in {a.name} and {right or 'none'} in {b.name}: only tensors of two "
                "models of one shape can be swapped."
            )


def _groups(names: Sequence[str]) -> list[tuple[str, int | None, list[str]]]:
    """Return what is swapped together: each kind in all blocks, each block, each kind in each block."""
    cells: dict[tuple[str, int], list[str]] = {}
    for name in names:
        kind, block = _kind_and_block(name)
        cells.setdefault((kind, block), []).append(name)
    kinds, blocks = dict.fromkeys(kind for kind, _block in cells), sorted({block for _kind, block in cells})
    members: Callable[[str, int | None], list[str]] = lambda kind, block: [  # noqa: E731
        name
        for (own, place), group in cells.items()
        if (not kind or own == kind) and block in (None, place)
        for name in group
    ]
    inside = [block for block in blocks if block != _OUTSIDE]
    found: list[tuple[str, int | None, list[str]]] = [(kind, None, members(kind, None)) for kind in kinds]
    found += [("", block, members("", block)) for block in inside]
    found += [(kind, block, group) for (kind, block), group in cells.items() if block != _OUTSIDE]
    return found


def _kind_and_block(name: str) -> tuple[str, int]:
    """Return what kind of tensor a name is of, a matrix with its bias, and its block.

    >>> _kind_and_block("blocks.3.attn.q.weight"), _kind_and_block("final_norm.weight")
    (('attn.q', 3), ('final_norm', -1))
    """
    parts = name.split(".")
    block = int(parts[1]) if parts[0] == "blocks" else _OUTSIDE
    kind = parts[2:] if block != _OUTSIDE else parts
    return ".".join(kind[:-1] if len(kind) > 1 else kind), block


def _dtype(tensors: Mapping[str, Tensor]) -> torch.dtype:
    return next(iter(tensors.values())).dtype
