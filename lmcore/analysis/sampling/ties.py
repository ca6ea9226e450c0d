"""Temperature 0: how near the two best tokens are at each position, and what changes which of them is the best.

In exact arithmetic none of the ways below changes a logit. Floating point rounds after each sum, so another order of
the same sums gives other last digits, and a position whose two best tokens are as near as that may go either way. This
is why two servers, or one under another load, answer temperature 0 with different texts.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.func import functional_call

from lmcore.language_model import LanguageModel
from lmcore.model import Model

__all__ = ["WAYS", "Margins", "Ties", "Variant", "margins", "run_ways", "ties"]

_BATCH = 3  # texts that are run beside this one


@dataclass(frozen=True, eq=False)
class Margins:
    """How near the two best tokens of each position are.

    Attributes:
        best, second: `[S]` int64, their ids; of equal ones the lower id is the best.
        logits: `[S]` float64, how much larger the best logit is.
        ulps: `[S]` float64, the same in units in the last place of float32 at the best logit.
        bfloat16_ulps: `[S]` float64, in those of bfloat16: below 1, both may round to one number.
    """

    best: Tensor
    second: Tensor
    logits: Tensor
    ulps: Tensor
    bfloat16_ulps: Tensor


def margins(logits: Tensor) -> Margins:
    """Measure the margin at each row of logits `[S, V]`, V at least 2.

    >>> found = margins(torch.tensor([[0.0, 8.0, 8.0 + 2**-20]]))
    >>> found.best.tolist(), found.second.tolist(), found.ulps.tolist(), found.bfloat16_ulps.tolist()
    ([2], [1], [1.0], [1.52587890625e-05])
    """
    values = logits.topk(2, dim=-1).values  # its ids are those of any of equal logits; argmax gives the lowest
    first = logits.argmax(-1)
    second = (logits == values[:, 1:]).scatter(-1, first[:, None], False).byte().argmax(-1)
    largest, next_largest = values.double().unbind(-1)
    apart = largest - next_largest
    exponent = torch.frexp(largest.abs().clamp_min(1e-30)).exponent - 1
    return Margins(first, second, apart, apart / 2.0 ** (exponent - 23), apart / 2.0 ** (exponent - 7))


@dataclass(frozen=True, eq=False)
class Variant:
    """The same text through the same model in another way.

    Attributes:
        name: One of `WAYS`.
        logits: `[S, V]` float32.
        difference: `[S]` float64, the largest difference of any logit from the plain pass.
        best: `[S]` int64, the best token of each position.
        flips: The positions whose best token is another one.
    """

    name: str
    logits: Tensor
    difference: Tensor
    best: Tensor
    flips: tuple[int, ...]


WAYS = ("cache", "batch", "order", "bfloat16")
"""Token by token with a cache; beside other texts; the MLP's neurons in another order; weights and sums in bfloat16."""


def run_ways(
    lm: LanguageModel, ids: Sequence[int], ways: Sequence[str] = WAYS, plain: Tensor | None = None, first: int = 0
) -> list[Variant]:
    """Run a text in several ways and hold each against the plain pass.

    "order" and "bfloat16" take memory for another copy of the weights while they run.

    Args:
        lm: The language model.
        ids: The text.
        ways: Of `WAYS`.
        plain: The logits of the plain pass, where they are known.
        first: "cache" runs the tokens up to this position together, as a generation runs its prompt.

    Raises:
        ValueError: an unknown way.
    """
    runs: dict[str, Callable[[LanguageModel, list[int]], Tensor]] = {
        "cache": lambda lm, text: _cached(lm, text, first),
        "batch": _batched,
        "order": _reordered,
        "bfloat16": _bfloat16,
    }
    text = [int(token) for token in ids]
    right = lm(text) if plain is None else plain
    found = []
    for name in ways:
        if name not in runs:
            raise ValueError(f"{name!r} is no way to run a text; there are {', '.join(WAYS)}.")
        logits = runs[name](lm, text)
        difference = (logits.double() - right.double()).abs().amax(-1)
        best = logits.argmax(-1)
        flips = (best != right.argmax(-1)).nonzero().squeeze(1)
        found.append(Variant(name, logits, difference, best, tuple(flips.tolist())))
    return found


@dataclass(frozen=True, eq=False)
class Ties:
    """The steps of a text at temperature 0: their margins, and in which ways each was run so far.

    Attributes:
        first: The position of the first step; step i chooses the token after position `first + i`.
        margins: Of each step.
        ways: Without their logits (`[0, V]`), of the steps only.
        n_ways: How many there will be.
    """

    first: int
    margins: Margins
    ways: tuple[Variant, ...] = ()
    n_ways: int = len(WAYS)

    def flips(self, step: int) -> dict[str, int]:
        """Return the ways in which another token is the best at a step, with its id."""
        best = int(self.margins.best[step])
        return {way.name: int(way.best[step]) for way in self.ways if int(way.best[step]) != best}


def ties(lm: LanguageModel, ids: Sequence[int], first: int = 0, ways: Sequence[str] = WAYS) -> Iterator[Ties]:
    """Run a text, then in each way; yield what is known after each.

    Args:
        lm: The language model.
        ids: The text.
        first: The position of the first step: the last of the prompt, for a generation.
        ways: Of `WAYS`.

    Raises:
        ValueError: an unknown way.
    """
    plain = lm([int(token) for token in ids])
    found = Ties(first, margins(plain[first:]), n_ways=len(ways))
    yield found
    for name in ways:
        (way,) = run_ways(lm, ids, [name], plain, first)
        flips = tuple(place - first for place in way.flips if place >= first)
        steps = Variant(name, way.logits[:0].clone(), way.difference[first:], way.best[first:], flips)
        found = replace(found, ways=(*found.ways, steps))
        yield found


def _cached(lm: LanguageModel, ids: list[int], first: int) -> Tensor:
    cache = lm.new_cache(len(ids))
    rows = [lm(ids[: first + 1], cache=cache)]
    for end in range(first + 2, len(ids) + 1):
        if lm.config.turns_anew(cache.length, end):
            cache.truncate(0)  # as generation does: from this length on all keys are turned otherwise
        rows.append(lm(ids[cache.length : end], cache=cache)[-1:])
    return torch.cat(rows)


def _batched(lm: LanguageModel, ids: list[int]) -> Tensor:
    others = [ids[place:] + ids[:place] for place in range(1, _BATCH + 1)]
    return lm([ids, *others])[0]


def _apart(lm: LanguageModel) -> Model:
    """Return a model of its own that shares the tensors: functional_call changes one that others read meanwhile."""
    return copy.deepcopy(lm.model, {id(tensor): tensor for tensor in (*lm.model.parameters(), *lm.model.buffers())})


def _reordered(lm: LanguageModel, ids: list[int]) -> Tensor:
    """Put the neurons of each MLP, or expert, into another order: the same function, its sums in another order."""
    generator = torch.Generator().manual_seed(0)
    weights = dict(lm.model.named_parameters())
    changed: dict[str, Tensor] = {}
    for name in [name for name in weights if name.endswith(".down.weight")]:
        path = name.removesuffix("down.weight")
        order = torch.randperm(weights[name].shape[-1], generator=generator)
        changed[name] = weights[name][..., order]  # of experts [n_experts, d_model, d_mlp]
        for part in ("up", "gate"):
            if (weight := f"{path}{part}.weight") in weights:
                changed[weight] = weights[weight][..., order, :]
            if (bias := f"{path}{part}.bias") in weights:
                changed[bias] = weights[bias][..., order]
    with torch.inference_mode():
        return functional_call(_apart(lm), changed, (torch.tensor(ids),)).float()


def _bfloat16(lm: LanguageModel, ids: list[int]) -> Tensor:
    every = [*lm.model.named_parameters(), *lm.model.named_buffers()]  # a tied matrix is there once
    state = {name: value.bfloat16() for name, value in every if value.is_floating_point()}
    with torch.inference_mode():
        return functional_call(_apart(lm), state, (torch.tensor(ids),)).float()
