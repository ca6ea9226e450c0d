"""The stages of a sampler, each one function: candidates and settings in, candidates and a remark out.

Formulas, for logits z, probabilities p of the candidates at that point, and their entropy H in nats:

    repetition_penalty r   z / r if z > 0 else z * r, once for each distinct token seen      Keskar et al. 2019, CTRL;
                           multiplying the negative ones is the engines' correction
    frequency_penalty a    z - a * count                                                     OpenAI API reference
    presence_penalty a     z - a * (count > 0)                                               OpenAI API reference
    temperature T          z / T
    top_n_sigma n          keep z >= max z - n * std(z)                                      Tang et al. 2024
    top_k k                keep the k largest                                                Fan et al. 2018
    top_p                  keep the most probable until they add up to p                     Holtzman et al. 2019
    min_p m                keep p >= m * max p                                               Nguyen et al. 2024
    typical_p              keep those with |-log p - H| smallest until they add up to p      Meister et al. 2022
    epsilon_cutoff e       keep p >= e                                                       Hewitt et al. 2022
    eta_cutoff e           keep p >= min(e, sqrt(e) * exp(-H))                               Hewitt et al. 2022

A filter always leaves at least one token.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lmcore.distribution import largest
from lmcore.sampling.candidates import Candidates
from lmcore.sampling.nucleus import first_until_mass, fit_within
from lmcore.sampling.settings import SamplingSettings

__all__ = ["NOTES", "RUN", "History", "Note"]


class History(NamedTuple):
    """The tokens before this position, for the penalties: those of the prompt and those generated since."""

    prompt: Sequence[int] = ()
    generated: Sequence[int] = ()


class Note(str):
    """A remark on a step: a sentence, with the template and the values it was made from for a translation.

    >>> note = Note("top_k {k} keeps all", k=9)
    >>> str(note), note.template, note.values
    ('top_k 9 keeps all', 'top_k {k} keeps all', {'k': 9})
    """

    template: str
    values: Mapping[str, Any]

    def __new__(cls, template: str = "", **values: Any) -> Note:
        """Fill the template in."""
        note = super().__new__(cls, template.format(**values))
        note.template, note.values = template, values
        return note


NOTHING = Note()
CLAMPED = "top_k {k} was clamped to the {size} tokens of the vocabulary"
TURNED_OFF = "top_k {k} is more than the {size} tokens of the vocabulary, so it is off"
TIES_KEPT = "{extra} more tokens have the same logit as the last of the {k} and are kept as well"
GREEDY = "temperature {temperature:g} is greedy: the most probable token is kept"
GREEDY_TIE = (
    "temperature {temperature:g} is greedy: of {count} equally probable tokens the one with the lowest id is kept"
)
ONE_KEPT = "no token qualifies, so the most probable is kept"
TOP_P_ZERO = "top_p 0 keeps one token"
NOTHING_SEEN = "no token has been seen yet, so there is nothing to penalise"
NOTES = (CLAMPED, TURNED_OFF, TIES_KEPT, GREEDY, GREEDY_TIE, ONE_KEPT, TOP_P_ZERO, NOTHING_SEEN)
"""Every template a step's note is made from."""

Result = tuple[Candidates, Note]


def logit_bias(tokens: Candidates, settings: SamplingSettings, history: History) -> Result:
    """Add a number to the logits of some tokens; -inf bans one."""
    bias = dict(settings.logit_bias)
    ids = torch.tensor(list(bias), dtype=torch.int64)
    _check_ids(ids, tokens.vocab_size, "logit_bias")
    amounts = torch.tensor(list(bias.values()), dtype=torch.float64)
    return tokens.edited(ids, "add", amounts), NOTHING


def repetition_penalty(tokens: Candidates, settings: SamplingSettings, history: History) -> Result:
    """Make every token seen less likely, whatever the sign of its logit."""
    ids, counts = _seen(tokens, settings, list(history.prompt) + list(history.generated))
    amounts = torch.full_like(counts, settings.repetition_penalty)
    return tokens.edited(ids, "penalise", amounts), NOTHING if len(ids) else Note(NOTHING_SEEN)


def frequency_penalty(tokens: Candidates, settings: SamplingSettings, history: History) -> Result:
    """Lower each token seen in proportion to how often."""
    ids, counts = _seen(tokens, settings, _counted_additively(settings, history))
    amounts = counts * -settings.frequency_penalty
    return tokens.edited(ids, "add", amounts), NOTHING if len(ids) else Note(NOTHING_SEEN)


def presence_penalty(tokens: Candidates, settings: SamplingSettings, history: History) -> Result:
    """Lower each token seen by the same amount."""
    ids, counts = _seen(tokens, settings, _counted_additively(settings, history))
    amounts = torch.full_like(counts, -settings.presence_penalty)
    return tokens.edited(ids, "add", amounts), NOTHING if len(ids) else Note(NOTHING_SEEN)


def temperature(tokens: Candidates, settings: SamplingSettings, history: History) -> Result:
    """Divide the logits; 0, or less than the engine's least, keeps the most probable token alone."""
    t = settings.temperature
    if t > 0 and t >= settings.rules.greedy_below:
        return tokens.heated(t), NOTHING
    best = tokens.logits.argmax()  # the first of equal maxima, which is the lowest id
    equal = int((tokens.logits == tokens.logits[best]).sum())
    note = Note(GREEDY, temperature=t) if equal == 1 else Note(GREEDY_TIE, temperature=t, count=equal)
    return tokens.keep(best.unsqueeze(0)), note


def top_n_sigma(tokens: Candidates, settings: SamplingSettings, history: History) -> Result:
    """Keep the logits within n standard deviations of the largest; the temperature cancels out."""
    assert settings.top_n_sigma is not None  # the stage is active
    logits = tokens.logits.double()
    return tokens.keep_where(logits >= logits.max() - settings.top_n_sigma * logits.std(correction=0)), NOTHING


def top_k(tokens: Candidates, settings: SamplingSettings, history: History) -> Result:
    """Keep the k most probable tokens."""
    k, rules = settings.top_k, settings.rules
    assert k is not None  # the stage is active
    too_many = k > tokens.vocab_size
    if k >= tokens.vocab_size and rules.top_k_beyond_vocab == "off":
        return tokens, Note(TURNED_OFF, k=k, size=tokens.vocab_size) if too_many else NOTHING
    ranked = replace(tokens, ranked=True)
    if too_many:
        return ranked, Note(CLAMPED, k=k, size=tokens.vocab_size)
    if k >= len(tokens):
        return ranked, NOTHING
    kept = ranked.keep(largest(tokens.logits, k, rules.top_k_ties))
    if len(kept) > k:
        return kept, Note(TIES_KEPT, extra=len(kept) - k, k=k)
    return kept, NOTHING


def top_p(tokens: Candidates, settings: SamplingSettings, history: History) -> Result:
    """Keep the most probable tokens until they add up to p of the probability."""
    rules, p = settings.rules, settings.top_p
    if rules.top_p_boundary == "crossing dropped":
        arrival = torch.arange(len(tokens))
        if tokens.ranked:  # that engine's top-k leaves them by falling probability, of equal ones the higher id first
            arrival = len(tokens) - 1 - torch.sort(tokens.logits.flip(0), descending=True, stable=True).indices
        weights = tokens.weights()
        positions = fit_within(weights, p, arrival)
    else:
        below_max = tokens.below_max()
        weights = below_max.exp()
        positions = first_until_mass(below_max, weights, p, ties=rules.top_p_ties)
    return tokens.keep(positions, weights), Note(TOP_P_ZERO) if p == 0 else NOTHING


def min_p(tokens: Candidates, settings: SamplingSettings, history: History) -> Result:
    """Keep the tokens at least m times as probable as the most probable."""
    return tokens.keep_where(tokens.weights() >= settings.min_p), NOTHING  # the largest weight is 1


def typical_p(tokens: Candidates, settings: SamplingSettings, history: History) -> Result:
    """Keep the tokens whose surprisal is nearest to the entropy until they add up to p of the probability."""
    rules = settings.rules
    weights = tokens.weights()
    total = weights.sum()
    log_probs = tokens.below_max().sub_(total.log())
    probs = weights / total
    score = log_probs + probs if rules.typical_score == "exllamav2" else log_probs
    # An impossible token (p underflowed to 0, log p may be -inf) adds nothing to an expectation.
    expected = torch.where(probs > 0, probs * score, 0.0).sum()
    positions = first_until_mass(
        score.sub_(expected).abs_().neg_(),
        weights,
        settings.typical_p,
        boundary=rules.typical_boundary,
        ties=rules.typical_ties,
    )
    return tokens.keep(positions), NOTHING


def epsilon_cutoff(tokens: Candidates, settings: SamplingSettings, history: History) -> Result:
    """Keep the tokens with at least a fixed probability."""
    return _at_least(tokens, settings.epsilon_cutoff)


def eta_cutoff(tokens: Candidates, settings: SamplingSettings, history: History) -> Result:
    """Keep the tokens with at least a probability that falls as the entropy rises."""
    entropy_nats = -torch.xlogy(tokens.probs, tokens.probs).sum().item()
    epsilon = settings.eta_cutoff
    return _at_least(tokens, min(epsilon, math.sqrt(epsilon) * math.exp(-entropy_nats)))


RUN: Mapping[str, Callable[[Candidates, SamplingSettings, History], Result]] = {
    stage.__name__: stage
    for stage in (
        logit_bias,
        repetition_penalty,
        frequency_penalty,
        presence_penalty,
        temperature,
        top_n_sigma,
        top_k,
        top_p,
        min_p,
        typical_p,
        epsilon_cutoff,
        eta_cutoff,
    )
}
"""Stage name -> the function that carries it out."""


def _at_least(tokens: Candidates, cutoff: float) -> Result:
    mask = tokens.probs >= cutoff
    if bool(mask.any()):
        return tokens.keep_where(mask), NOTHING
    return tokens.keep_where(tokens.logits == tokens.logits.max()), Note(ONE_KEPT)


def _counted_additively(settings: SamplingSettings, history: History) -> list[int]:
    generated = list(history.generated)
    return generated if settings.rules.additive_penalties_count == "generated" else list(history.prompt) + generated


def _seen(tokens: Candidates, settings: SamplingSettings, seen: list[int]) -> tuple[Tensor, Tensor]:
    """Distinct tokens among the latest `penalty_last_n`, and how often each came, `[m]` int64 and float64."""
    latest = seen if settings.penalty_last_n is None else seen[max(len(seen) - settings.penalty_last_n, 0) :]
    counts = Counter(int(token) for token in latest)
    ids = torch.tensor(list(counts), dtype=torch.int64)
    _check_ids(ids, tokens.vocab_size, "history")
    return ids, torch.tensor(list(counts.values()), dtype=torch.float64)


def _check_ids(ids: Tensor, vocab_size: int, name: str) -> None:
    outside = ids[(ids < 0) | (ids >= vocab_size)]
    if len(outside):
        raise ValueError(f"{name} names token {outside[0].item()}; ids of this vocabulary run to {vocab_size - 1}.")
