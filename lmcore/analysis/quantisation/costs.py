"""What quantisation costs: perplexity, KL divergence and "same top p" over a text, against the size of the file.

The definitions are those of llama.cpp's perplexity tool (tools/perplexity/perplexity.cpp): the text is cut into chunks
of n_ctx tokens that know nothing of one another; only tokens of a chunk's second half are scored, so that each has at
least n_ctx / 2 before it; where the model begins every text with a token, that token stands in place of each chunk's
first. An interval is a mean with its standard error, taking the scored tokens as independent.

One thing is not the tool's. Where weights are quantised, llama.cpp rounds what they are multiplied with to 8 bits as
well; here the weights alone are rounded, so that the numbers are the weights' own cost. With four bits that is hardly
seen; with eight it is the larger part of what the tool reports. The tests hold q8_0 to llama.cpp's own logits: rounded
on both sides the mean KLD is the same within its error, and without that it is too low.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lmcore.corpus import HELD_OUT_SEED, Truth, windows
from lmcore.language_model import LanguageModel
from lmcore.loading import DTYPES, ModelName, model_name, quantised
from lmcore.quantisation import KINDS, size_of

Array = NDArray[np.float64]

MOST_KEPT = 256 * 2**20
"""Bytes of the unquantised model's logits that are kept from one variant to the next; the rest is computed again."""

_TRAINED_ON = 128  # tokens
_ROWS = 32  # distributions compared at a time, in float64


@dataclass(frozen=True)
class Estimate:
    """A mean and its standard error, both in the same unit."""

    value: float
    error: float

    @classmethod
    def of(cls, values: Array) -> Estimate:
        """Return the mean of some values; the error is NaN for fewer than two.

        >>> Estimate.of(np.array([1.0, 3.0]))
        Estimate(value=2.0, error=1.0)
        """
        n = len(values)
        return cls(float(values.mean()), float(values.std()) / math.sqrt(n - 1) if n > 1 else math.nan)


@dataclass(frozen=True)
class Chunk:
    """A piece of the text as the model reads it, and what is scored of it.

    Attributes:
        ids: what the model is given.
        first: the position from which on its predictions are scored.
        came: the tokens that came after the positions from `first` on.
    """

    ids: tuple[int, ...]
    first: int
    came: tuple[int, ...]


def chunks(ids: Sequence[int], n_ctx: int, first_token: int | None = None) -> list[Chunk]:
    """Cut a text into chunks of n_ctx tokens; what is left over at the end is not scored.

    A text shorter than n_ctx is one chunk, where llama.cpp's tool would refuse it.

    Args:
        ids: of the whole text.
        n_ctx: tokens of a chunk.
        first_token: what stands in place of each chunk's first; None for models that begin texts without a token.

    Raises:
        ValueError: for an n_ctx below 4, or a text of fewer than 4 tokens: none would be scored with one before it.

    >>> chunks(range(10, 19), 4)
    [Chunk(ids=(10, 11, 12), first=2, came=(13,)), Chunk(ids=(14, 15, 16), first=2, came=(17,))]
    """
    size = min(n_ctx, len(ids))
    if size < 4:
        raise ValueError(f"a chunk needs at least 4 tokens, got n_ctx = {n_ctx} and a text of {len(ids)}.")
    found = []
    for start in range(0, len(ids) - size + 1, size):
        chunk = [int(token) for token in ids[start : start + size]]
        read = [chunk[0] if first_token is None else first_token, *chunk[1:-1]]
        found.append(Chunk(tuple(read), size // 2, tuple(chunk[size // 2 + 1 :])))
    return found


def chunks_of(lm: LanguageModel, text: str, n_ctx: int) -> list[Chunk]:
    """Return the chunks of a text for a model.

    Raises:
        ValueError: see `chunks`.
    """
    found = lm.tokenizer.encode(text)
    return chunks(found.ids, min(n_ctx, lm.config.context_length), found.ids[0] if found.n_added else None)


def world_chunks(lm: LanguageModel, n: int) -> list[Chunk]:
    """Return held-out texts of the small world, a chunk each, on which the grammar knows every distribution.

    They are as long as those that the built-in models were trained on: beyond, they know less than the grammar.
    """
    rows = next(windows(HELD_OUT_SEED, n, min(_TRAINED_ON, lm.config.context_length), lm.tokenizer))
    return [chunks(row[:-1], len(row) - 1)[0] for row in rows]


@dataclass(frozen=True)
class Cost:
    """What a variant of a model costs against the model itself, over the tokens scored so far.

    Attributes:
        variant: what stands after the model's name, e.g. "q4_0:kv8".
        nbytes: of the weights in a file.
        weights: how many there are.
        nats: float64 [n], -ln P of each scored token under the variant.
        base_nats: the same under the model itself.
        kld: float64 [n], KL(model || variant) at each of them, in nats.
        same_top: bool [n], whether both hold the same token most probable.
        truth_kld: float64 [n], KL(grammar || variant) in nats; None without a known truth.
    """

    variant: str
    nbytes: int
    weights: int
    nats: Array
    base_nats: Array
    kld: Array
    same_top: NDArray[np.bool_]
    truth_kld: Array | None = None

    @property
    def bits_per_weight(self) -> float:
        """Bits of the file for each weight, norms and biases included."""
        return 8 * self.nbytes / self.weights

    @property
    def perplexity(self) -> Estimate:
        """exp of the mean of -ln P; its error is that of the mean, times itself."""
        nats = Estimate.of(self.nats)
        value = math.exp(nats.value) if nats.value < 709 else math.inf  # the largest that float64 holds
        return Estimate(value, value * nats.error)

    @property
    def ln_ratio(self) -> Estimate:
        """ln(perplexity / perplexity of the model itself), with the error of the paired difference."""
        return Estimate.of(self.nats - self.base_nats)

    @property
    def mean_kld(self) -> Estimate:
        """Mean KL(model || variant) in nats."""
        return Estimate.of(self.kld)

    @property
    def same_top_share(self) -> Estimate:
        """ "Same top p": how often the most probable token is the same, with the error sqrt(p (1 - p) / (n - 1))."""
        return Estimate.of(self.same_top.astype(np.float64))

    @property
    def mean_truth_kld(self) -> Estimate | None:
        """Mean KL(grammar || variant) in nats."""
        return None if self.truth_kld is None else Estimate.of(self.truth_kld)


def extra_truth_kld(cost: Cost, base: Cost) -> Estimate | None:
    """Return how much farther from the grammar a variant is than the model itself, with the error of the pairs.

    None without a known truth.
    """
    if cost.truth_kld is None or base.truth_kld is None:
        return None
    return Estimate.of(cost.truth_kld - base.truth_kld[: len(cost.truth_kld)])


def size(lm: LanguageModel, variant: str) -> tuple[int, int]:
    """Return the bytes of a variant's weights in a file, and how many weights there are.

    >>> import lmcore
    >>> size(lmcore.load("small-world"), "float32")
    (5018112, 1254528)
    """
    given = _parts(variant)
    stored = size_of(lm.model, KINDS.get(given.weights))
    nbytes, weights = sum(each.nbytes for each in stored), sum(each.weights for each in stored)
    return (2 * weights if given.weights == "bfloat16" else nbytes), weights


def costs(
    lm: LanguageModel,
    variants: Sequence[str],
    text: Sequence[Chunk],
    truth: Truth | None = None,
    lock: AbstractContextManager[object] | None = None,
) -> Iterator[Cost]:
    """Measure variants of a model on a text, one after the other; yields after each chunk of each.

    Args:
        lm: the model itself, in float32.
        variants: what may stand after its name: "float32", "bfloat16", "q4_0", "kv8", "q8_0:kv8" ...
        text: see `chunks`.
        truth: the small world's own distribution, where the model learned that and the chunks begin as its texts do.
        lock: held during each forward pass; quantising takes longer, and does without it.

    Raises:
        ValueError: for a variant that is not known.
    """
    parts = [_parts(variant) for variant in variants]
    passes = lock or nullcontext()
    base = _Base(lm, text, truth, passes)
    for variant, given in zip(variants, parts, strict=True):
        other = lm if given.plain else quantised(lm, given.weights or None, given.int8_cache)
        measured: list[tuple[Array, ...]] = []
        for index, chunk in enumerate(text):
            logits = base.logits(index)
            measured.append(
                _compare(logits, logits if other is lm else _scored(other, chunk, passes), chunk, base.truth(index))
            )
            nats, base_nats, kld, same, *true = (np.concatenate(each) for each in zip(*measured, strict=True))
            yield Cost(variant, *size(lm, variant), nats, base_nats, kld, same.astype(bool), true[0] if true else None)
        del other


def _parts(variant: str) -> ModelName:
    found = model_name(f"model:{variant}")
    if found.bare != "model":
        raise ValueError(
            f"a variant must be one of {', '.join((*DTYPES, *KINDS))}, or kv8, or one of them with :kv8 after it, got "
            f"{variant!r}."
        )
    return found


class _Base:
    """The scored logits of the model itself, and the truth there, kept as far as they fit."""

    def __init__(
        self, lm: LanguageModel, text: Sequence[Chunk], truth: Truth | None, lock: AbstractContextManager[object]
    ) -> None:
        self._lm, self._text, self._truth, self._lock = lm, text, truth, lock
        self._logits: dict[int, Tensor] = {}
        self._truths: dict[int, Tensor | None] = {}

    def logits(self, index: int) -> Tensor:
        if index in self._logits:
            return self._logits[index]
        found = _scored(self._lm, self._text[index], self._lock)
        if sum(kept.nbytes for kept in self._logits.values()) + found.nbytes <= MOST_KEPT:
            self._logits[index] = found
        return found

    def truth(self, index: int) -> Tensor | None:
        if self._truth is not None and index not in self._truths:
            chunk = self._text[index]
            found = self._truth.distributions(chunk.ids)
            self._truths[index] = None if found is None else torch.from_numpy(found[chunk.first :])
        return self._truths.get(index)


def _scored(lm: LanguageModel, chunk: Chunk, lock: AbstractContextManager[object]) -> Tensor:
    """Return the logits of the positions that are scored, float32 [n, V]."""
    with lock, torch.inference_mode():
        hidden = lm.model.hidden_state(torch.tensor(chunk.ids))
        return lm.model.unembed(hidden[chunk.first :]).float()


def _compare(base: Tensor, other: Tensor, chunk: Chunk, truth: Tensor | None) -> tuple[Array, ...]:
    """Return nats, base_nats, kld, same_top and, with a truth, truth_kld, [n] each."""
    found: list[list[Tensor]] = []
    for start in range(0, len(base), _ROWS):
        some = slice(start, start + _ROWS)
        p, q = base[some].double().log_softmax(-1), other[some].double().log_softmax(-1)
        came = torch.tensor(chunk.came[some]).unsqueeze(-1)
        row = [-q.gather(-1, came)[:, 0], -p.gather(-1, came)[:, 0], (p.exp() * (p - q)).sum(-1)]
        row.append(base[some].argmax(-1) == other[some].argmax(-1))
        if truth is not None:
            true = truth[some]
            row.append((torch.xlogy(true, true) - true * q).sum(-1))
        found.append(row)
    return tuple(torch.cat(each).numpy() for each in zip(*found, strict=True))
