"""Speculative decoding: a small model drafts tokens, the model itself checks them all in one pass.

    draft      x1 ~ q1, x2 ~ q2, ..., xn ~ qn          n passes of the draft model
    verify     p1, p2, ..., pn, pn+1                   one pass of the target
    accept     xi where u <= p(xi) / q(xi), from the left; at the first that is refused draw from the residual

        residual(x) = max(0, p(x) - q(x)) / sum max(0, p - q)

    bonus      if all n are accepted, one more token from pn+1

Every token is distributed as p, whatever the draft says: min(p, q) + (1 - a) residual = p, where a = sum min(p, q) =
1 - TV(p, q) is the probability that a draft is accepted. p and q are the distributions that tokens are drawn from:
after the penalties, the temperature and the filters of each. Sources: Leviathan, Kalman and Matias 2023
(arXiv 2211.17192), Chen et al. 2023 (arXiv 2302.01318).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from lmcore.distribution import top
from lmcore.kv_cache import KVCache
from lmcore.language_model import LanguageModel, as_ids
from lmcore.sampling import History, Reshaped, SamplingSettings, State, draw, new_generator, reshape

Fate = Literal["accepted", "refused", "unread"]
Origin = Literal["", "residual", "bonus"]
MAX_DRAFT = 16
_SHOWN = 12  # tokens of a pair of distributions that are kept


def residual(p: Tensor, q: Tensor) -> Tensor:
    """Return what is drawn from after a refusal: `max(0, p - q)`, made to sum to 1; p where p is nowhere above q.

    Args:
        p, q: `[V]` float64, the target's and the draft's distribution.

    >>> residual(torch.tensor([0.5, 0.5]).double(), torch.tensor([0.25, 0.75]).double()).tolist()
    [1.0, 0.0]
    """
    above = (p - q).clamp(min=0)
    total = above.sum()
    return above / total if total > 0 else p


def acceptance(p: Tensor, q: Tensor) -> float:
    """Return the probability that a token drawn from q is accepted: `sum min(p, q) = 1 - TV(p, q)`."""
    return float(torch.minimum(p, q).sum())


def tokens_per_pass(rate: float, n_draft: int) -> float:
    """Return how many tokens a pass of the target gives if each draft is accepted with the same probability.

    `(1 - a^(n+1)) / (1 - a)`, equation 1 of Leviathan et al. 2023: the sum of a geometric series.

    >>> tokens_per_pass(0.5, 2), tokens_per_pass(1, 4)
    (1.75, 5.0)
    """
    return float(sum(rate**n for n in range(n_draft + 1)))


@dataclass(frozen=True)
class BothDistributions:
    """The two distributions at a drafted token: the tokens with the largest probabilities, and all others as one.

    Attributes:
        ids: the tokens, those with the largest of p and q first.
        p, q, residual: their probabilities; `rest` has the sums over all other tokens in the same order.
    """

    ids: tuple[int, ...]
    p: tuple[float, ...]
    q: tuple[float, ...]
    residual: tuple[float, ...]
    rest: tuple[float, float, float]


@dataclass(frozen=True)
class Draft:
    """One token that the draft model proposed.

    Attributes:
        token_id, token: the token and its bytes.
        p, q: its probability under the target and under the draft.
        acceptance: how probable it was, before the draft was drawn, that it would be accepted: 1 - TV.
        uniform: the number from 0 to 1 it was accepted by, where that is below p / q; None where it was not read.
        fate: "accepted", "refused", or "unread" after one that was refused.
        pair: both distributions.
    """

    token_id: int
    token: bytes
    p: float
    q: float
    acceptance: float
    uniform: float | None
    fate: Fate
    pair: BothDistributions


@dataclass(frozen=True)
class Round:
    """One pass of the target: what was drafted, and what became of it.

    Attributes:
        drafts: in order; none where there was room for one more token only.
        token_id, token: the token after those accepted, from the residual or the target; None where the last
            accepted one ended the text.
        prob: its probability in the distribution it was drawn from.
        origin: "residual" after a refusal, "bonus" after none; "" where there is none.
        is_whole: whether as many were drafted as asked for, and no accepted one ended the text.
    """

    drafts: tuple[Draft, ...]
    token_id: int | None
    token: bytes
    prob: float
    origin: Origin
    is_whole: bool

    @property
    def ids(self) -> list[int]:
        """The tokens that this round added to the text."""
        accepted = [draft.token_id for draft in self.drafts if draft.fate == "accepted"]
        return accepted if self.token_id is None else [*accepted, self.token_id]


@dataclass(frozen=True)
class Speculation:
    """A text that was drawn speculatively, as far as it is.

    Attributes:
        rounds: one a pass of the target.
        n_draft: how many tokens were to be drafted a round.
    """

    rounds: tuple[Round, ...] = ()
    n_draft: int = 0
    _tested: tuple[Draft, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        tested = (draft for each in self.rounds for draft in each.drafts if draft.fate != "unread")
        object.__setattr__(self, "_tested", tuple(tested))

    @property
    def ids(self) -> list[int]:
        """The tokens drawn."""
        return [token_id for each in self.rounds for token_id in each.ids]

    @property
    def tested(self) -> int:
        """How many drafts were accepted or refused."""
        return len(self._tested)

    @property
    def accepted(self) -> int:
        """How many drafts were accepted."""
        return sum(draft.fate == "accepted" for draft in self._tested)

    @property
    def expected_accepted(self) -> float:
        """How many of those tested were to be expected: the sum of their 1 - TV."""
        return sum(draft.acceptance for draft in self._tested)

    @property
    def deviation(self) -> float:
        """The standard deviation of the number accepted: each is a coin that falls with its own 1 - TV."""
        return math.sqrt(sum(max(a * (1 - a), 0.0) for a in (draft.acceptance for draft in self._tested)))

    @property
    def tokens_per_pass(self) -> float:
        """Tokens drawn in the rounds that are whole, a pass of the target; 0 where none is."""
        whole = [len(each.ids) for each in self.rounds if each.is_whole]
        return sum(whole) / len(whole) if whole else 0.0

    @property
    def expected_tokens_per_pass(self) -> float:
        """What the mean of 1 - TV gives by `tokens_per_pass`; 0 where nothing was tested."""
        return tokens_per_pass(self.expected_accepted / self.tested, self.n_draft) if self.tested else 0.0


def check_pair(target: LanguageModel, draft: LanguageModel) -> None:
    """Refuse two models whose ids do not stand for the same tokens.

    Raises:
        ValueError: naming the two and where they differ.
    """
    ours, theirs = target.tokenizer, draft.tokenizer
    if ours is theirs:
        return
    if ours.vocab_size != theirs.vocab_size:
        raise ValueError(
            f"{draft.name} has {theirs.vocab_size:,} tokens and {target.name} {ours.vocab_size:,}: a draft model needs "
            "the vocabulary of the model it drafts for."
        )
    for token_id in range(ours.vocab_size):
        if ours.token_bytes(token_id) != theirs.token_bytes(token_id):
            raise ValueError(
                f"token {token_id} is {theirs.token_bytes(token_id)!r:.60} in {draft.name} and "
                f"{ours.token_bytes(token_id)!r:.60} in {target.name}: a draft model needs the vocabulary of the model "
                "it drafts for."
            )


def speculate(
    target: LanguageModel,
    draft: LanguageModel,
    ids: Sequence[int],
    settings: SamplingSettings | None = None,
    *,
    n_draft: int = 4,
    max_new_tokens: int,
    draft_settings: SamplingSettings | None = None,
    stop_ids: Collection[int] = (),
    generator: torch.Generator | None = None,
) -> Iterator[Speculation]:
    """Continue a prompt with a draft model; stop early by no longer asking.

    The text is distributed as that of `generate` with the target alone, and with temperature 0 it is the same text
    (but for two logits so nearly equal that a pass over several tokens rounds them the other way). The seed gives
    another text than it gives `generate`: a round takes a number for each draft, for each that is tested, and one more.

    Args:
        target, draft: two models of one vocabulary.
        ids: the prompt, at least one token.
        settings: how the target's logits are reshaped; None is the plain softmax.
        n_draft: how many tokens are drafted a round, 1 to `MAX_DRAFT`.
        max_new_tokens: the most tokens to draw.
        draft_settings: how the draft's logits are reshaped; None is as the target's. Stages with a state begin each
            round with the target's.
        stop_ids: ids that end the text.
        generator: the source of randomness; None makes one from `settings.seed`.

    Yields:
        All rounds so far, after each.

    Raises:
        TypeError: for text in place of ids.
        ValueError: for two vocabularies, an empty prompt, a prompt that leaves no room, or a number out of range.
    """
    given = as_ids(ids)
    limit = min(target.config.context_length, draft.config.context_length)
    if given.ndim != 1 or not 1 <= len(given) <= limit:
        raise ValueError(f"ids has shape {list(given.shape)}; a prompt here has from 1 to {limit:,} tokens.")
    for name, value, most in (("n_draft", n_draft, MAX_DRAFT), ("max_new_tokens", max_new_tokens, limit)):
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise ValueError(f"{name} is {value!r}; it must be a whole number from 1 to {most:,}.")
    check_pair(target, draft)
    settings = SamplingSettings() if settings is None else settings
    generator = new_generator(settings.seed) if generator is None else generator
    speculator = _Speculator(target, draft, settings, draft_settings or settings, frozenset(stop_ids), generator)
    return speculator.rounds(given.tolist(), n_draft, max_new_tokens, limit)


class _Cached:
    """A model with its cache: the logits after the last tokens of a text that grows and is cut back."""

    def __init__(self, lm: LanguageModel) -> None:
        self._lm = lm
        self._cache: KVCache = lm.new_cache()

    def fits_one_pass(self, length: int, more: int) -> bool:
        """Whether one pass may go from a text to one that is longer by so many: some models turn their keys anew."""
        return not self._lm.config.turns_anew(length, length + more)

    def last(self, ids: list[int], n: int) -> Tensor:
        """Return the logits [n, V] after the last n places of a text; what the cache has of it stays valid."""
        if self._lm.config.turns_anew(self._cache.length, len(ids)):
            self._cache.truncate(0)
        self._cache.truncate(min(self._cache.length, len(ids) - n))
        return self._lm(ids[self._cache.length :], cache=self._cache)[-n:]

    def keep(self, length: int) -> None:
        """Cut the cache back to the text's first tokens."""
        self._cache.truncate(min(self._cache.length, length))


class _Speculator:
    def __init__(
        self,
        target: LanguageModel,
        draft: LanguageModel,
        settings: SamplingSettings,
        draft_settings: SamplingSettings,
        stop_ids: frozenset[int],
        generator: torch.Generator,
    ) -> None:
        self._tokenizer = target.tokenizer
        self._target, self._draft = _Cached(target), _Cached(draft)
        self._settings, self._draft_settings = settings, draft_settings
        self._stop_ids, self._generator = stop_ids, generator

    def rounds(self, prompt: list[int], n_draft: int, max_new_tokens: int, limit: int) -> Iterator[Speculation]:
        found = Speculation(n_draft=n_draft)
        text: list[int] = []
        state: State = {}
        while len(text) < max_new_tokens and len(prompt) + len(text) <= limit:
            length = len(prompt) + len(text)
            # A round gives one token more than are drafted, and the model need not read the last one.
            n = min(n_draft, max_new_tokens - len(text) - 1, limit - length)
            while not (self._draft.fits_one_pass(length, n) and self._target.fits_one_pass(length, n)):
                n -= 1
            one, state = self._round(prompt, text, n, state, n_draft)
            found = Speculation((*found.rounds, one), n_draft)
            text += one.ids
            yield found
            if text[-1] in self._stop_ids:
                return

    def _round(self, prompt: list[int], text: list[int], n: int, state: State, n_draft: int) -> tuple[Round, State]:
        """Draft n tokens, check them, and return what came of it with the state after it."""
        drafted, qs = self._propose(prompt, text, n, state)
        rows = self._target.last([*prompt, *text, *drafted], len(drafted) + 1)
        ps, states = [], [state]
        for place, row in enumerate(rows):  # one more than were drafted
            history = History(prompt, [*text, *drafted[:place]])
            ps.append(reshape(row, self._settings, history, states[-1]))
            states += [ps[-1].next_state(token_id) for token_id in drafted[place : place + 1]]
        uniforms: list[float] = []
        n_accepted = 0
        for token_id, p, q in zip(drafted, ps, qs, strict=False):
            uniforms.append(float(torch.rand(1, dtype=torch.float64, generator=self._generator)))
            # Below, and not at: the number can be 0, and what the target gives no probability never comes.
            if not uniforms[-1] * float(q.probs[token_id]) < float(p.probs[token_id]):
                break
            n_accepted += 1
        fates: list[Fate] = ["accepted" if place < n_accepted else "unread" for place in range(len(drafted))]
        fates[n_accepted : n_accepted + 1] = ["refused"] * (n_accepted < len(drafted))
        drafts = tuple(
            self._drafted(token_id, p.probs, q.probs, fate, uniforms[place] if place < len(uniforms) else None)
            for place, (token_id, p, q, fate) in enumerate(zip(drafted, ps, qs, fates, strict=False))
        )
        for model in (self._draft, self._target):
            model.keep(len(prompt) + len(text) + n_accepted)
        if n_accepted and drafted[n_accepted - 1] in self._stop_ids:
            return Round(drafts, None, b"", 0.0, "", is_whole=False), states[n_accepted]
        p = ps[n_accepted]
        all_accepted = n_accepted == len(drafted)
        probs = p.probs if all_accepted else residual(p.probs, qs[n_accepted].probs)
        token_id = draw(probs, self._generator)
        token, prob = self._tokenizer.token_bytes(token_id), float(probs[token_id])
        origin: Origin = "bonus" if all_accepted else "residual"
        return Round(drafts, token_id, token, prob, origin, len(drafted) == n_draft), p.next_state(token_id)

    def _propose(self, prompt: list[int], text: list[int], n: int, state: State) -> tuple[list[int], list[Reshaped]]:
        """Let the draft model draw n tokens, fewer where one of them would end the text."""
        drafted: list[int] = []
        qs: list[Reshaped] = []
        while len(drafted) < n and not (drafted and drafted[-1] in self._stop_ids):
            row = self._draft.last([*prompt, *text, *drafted], 1)[-1]
            qs.append(reshape(row, self._draft_settings, History(prompt, [*text, *drafted]), state))
            drafted.append(draw(qs[-1], self._generator))
            state = qs[-1].next_state(drafted[-1])
        return drafted, qs

    def _drafted(self, token_id: int, p: Tensor, q: Tensor, fate: Fate, uniform: float | None) -> Draft:
        token, chances = self._tokenizer.token_bytes(token_id), (float(p[token_id]), float(q[token_id]))
        return Draft(token_id, token, *chances, acceptance(p, q), uniform, fate, _pair(p, q, token_id))


def _pair(p: Tensor, q: Tensor, token_id: int) -> BothDistributions:
    left = residual(p, q)
    ids = top(torch.maximum(p, q), _SHOWN).ids
    if token_id not in ids:
        ids[-1] = token_id
    kept = [tuple(each[ids].tolist()) for each in (p, q, left)]
    rest = [max(float(each.sum()) - sum(shown), 0.0) for each, shown in zip((p, q, left), kept, strict=True)]
    return BothDistributions(tuple(ids.tolist()), kept[0], kept[1], kept[2], (rest[0], rest[1], rest[2]))
