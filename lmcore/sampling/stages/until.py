"""Filters that keep the first tokens of an order: so many of them, or until their probability adds up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from lmcore.distribution import largest
from lmcore.sampling.around import Around
from lmcore.sampling.candidates import Candidates
from lmcore.sampling.falling import GUARD, Falling
from lmcore.sampling.nucleus import first_until_mass, fit_within, goes_without
from lmcore.sampling.stage import NOTHING, Context, Field, Note, Range, Stage, span

if TYPE_CHECKING:
    from lmcore.sampling.settings import SamplingSettings

__all__ = ["CLAMPED", "TIES_KEPT", "TOP_K", "TOP_P", "TOP_P_ZERO", "TURNED_OFF", "TYPICAL"]

CLAMPED = "top_k {k} was clamped to the {size} tokens of the vocabulary"
TURNED_OFF = "top_k {k} is more than the {size} tokens of the vocabulary, so it is off"
TIES_KEPT = "{extra} more tokens have the same logit as the last of the {k} and are kept as well"
TOP_P_ZERO = "top_p 0 keeps one token"
_MASS_STOPS = (*span(0, 0.98, 0.01), 0.985, 0.99, 0.995, 0.999, 1.0)


def top_k(tokens: Candidates, context: Context) -> tuple[Candidates, Note]:
    """Keep the k most probable tokens."""
    k, rules = context.settings.top_k, context.settings.rules
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


def _top_k_falling(tokens: Falling, settings: SamplingSettings) -> Falling:
    kept = tokens.keep(torch.full_like(tokens.count, settings.top_k))
    return kept if settings.rules.top_k_ties == "lowest" else kept.unsure(_splits_equals(tokens, kept))


def _splits_equals(before: Falling, after: Falling) -> torch.Tensor:
    """`[N]` bool, where the last survivor and the first that was taken away have equal logits."""
    equal = before.rows.value(after.end) == before.rows.value(after.end - 1)
    return equal & (after.count < before.count)


def top_p(tokens: Candidates, context: Context) -> tuple[Candidates, Note]:
    """Keep the most probable tokens until they add up to p of the probability."""
    settings, rules = context.settings, context.settings.rules
    p = settings.top_p
    note = Note(TOP_P_ZERO) if p == 0 else NOTHING
    if rules.top_p_boundary == "crossing dropped":
        arrival = torch.arange(len(tokens))
        if tokens.ranked:  # that engine's top-k leaves them by falling probability, of equal ones the higher id first
            arrival = len(tokens) - 1 - torch.sort(tokens.logits.flip(0), descending=True, stable=True).indices
        weights = tokens.weights()
        return tokens.keep(fit_within(weights, p, arrival), weights), note
    alone = rules.top_p_joint == "no" or (rules.top_p_joint == "without min_p" and settings.min_p > 0)
    joint = not alone and "top_k" in context.entered
    of = context.entered["top_k"] if joint else tokens
    below_max = of.below_max()
    weights = below_max.exp()
    positions = first_until_mass(
        below_max,
        weights,
        p,
        boundary="exceed" if rules.top_p_boundary == "exceed" else "reach",
        ties=rules.top_p_ties,
        tolerance=context.tolerance,
    )
    if joint:
        return tokens.keep_where(torch.isin(tokens.token_ids, of.token_ids[positions])), note
    return tokens.keep(positions, weights), note


def _top_p_falling(tokens: Falling, settings: SamplingSettings) -> Falling | None:
    rules, p = settings.rules, settings.top_p
    if rules.top_p_boundary == "crossing dropped":
        return None
    joint = rules.top_p_joint == "yes" or (rules.top_p_joint == "without min_p" and settings.min_p == 0)
    of = tokens.entered.get("top_k", tokens) if joint else tokens
    exceeds = rules.top_p_boundary == "exceed"
    found = of.rows.reach(of.temperature, of.ahead.weights + p * of.total, GUARD * of.total, exceeds)
    count, near = found.n_tokens - of.first, found.near
    if not exceeds and of.tolerance > 0:
        before, weight = (found.before - of.ahead.weights) / of.total, found.weight / of.total
        is_out, by_rounding = goes_without(before, weight, p, of.tolerance, GUARD)
        count, near = count - is_out.long(), near | by_rounding
    inside = of.keep(count)
    if rules.top_p_ties != "lowest":
        near = near | _splits_equals(of, inside)
    return tokens.keep(inside.count).unsure(near | of.total.isnan())


def typical_p(tokens: Candidates, context: Context) -> Candidates:
    """Keep the tokens whose surprisal is nearest to the entropy until they add up to p of the probability."""
    rules = context.settings.rules
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
        context.settings.typical_p,
        boundary=rules.typical_boundary,
        ties=rules.typical_ties,
        tolerance=context.tolerance,
    )
    return tokens.keep(positions)


def _typical_falling(tokens: Falling, settings: SamplingSettings) -> Falling | None:
    rules, mass = settings.rules, settings.typical_p
    if rules.typical_score == "exllamav2":
        return None
    # |-log p - H| is the distance of a value from this one, over T; the survivors stand on its two sides.
    middle = tokens.temperature * (tokens.total.log() - tokens.entropy_nats)
    around = Around.of(tokens, middle, mass * tokens.total)
    shares = (around.known[:, None] + around.weights.cumsum(1)) / tokens.total[:, None]
    goals = torch.tensor([mass - GUARD, mass, mass + GUARD], dtype=torch.float64).expand(len(shares), 3).contiguous()
    exceeds = rules.typical_boundary == "exceed"
    fewest, found, most = torch.searchsorted(shares, goals, right=exceeds).unbind(1)
    near = fewest != most
    if rules.typical_boundary != "dropped":
        sums = torch.cat([around.known[:, None] / tokens.total[:, None], shares], dim=1)
        before = sums.gather(1, found[:, None]).squeeze(1)
        weight = sums.gather(1, (found + 1).clamp_max(shares.shape[1])[:, None]).squeeze(1) - before
        found = found + 1
        if rules.typical_boundary == "reach" and tokens.tolerance > 0:
            is_out, by_rounding = goes_without(before, weight, mass, tokens.tolerance, GUARD)
            found, near = found - is_out.long(), near | by_rounding
    first, count, untold = around.stretch(found)
    return tokens.keep(count, first).unsure(near | untold | tokens.total.isnan())


def _counts(vocab_size: int) -> list[int]:
    """Return 1, 2, 3 ... then ever larger steps up to the vocabulary; the last stop, 0, is off."""
    stops = [1]
    while stops[-1] < vocab_size:
        stops.append(min(max(stops[-1] + 1, round(stops[-1] * 1.06)), vocab_size))
    return [*stops, 0]


TOP_K = Stage(
    name="top_k",
    title="Top-k",
    help="Keeps the k most probable tokens.",
    kind="filter",
    formula="the k largest z",
    source="Fan et al. 2018",
    fields=(Field(name="top_k", off=None, range=Range(0), whole=True, zero_is_off=True, on=40, stops=_counts),),
    run=top_k,
    falling=_top_k_falling,
    notes=(CLAMPED, TURNED_OFF, TIES_KEPT),
    rare=False,
)
TOP_P = Stage(
    name="top_p",
    title="Top-p",
    help="Keeps the most probable tokens until they add up to p; the one that crosses p stays.",
    kind="filter",
    formula="the most probable until they add up to p",
    source="Holtzman et al. 2019",
    fields=(Field(name="top_p", off=1.0, range=Range(0, 1), on=0.9, stops=lambda vocab_size: _MASS_STOPS),),
    run=top_p,
    falling=_top_p_falling,
    notes=(TOP_P_ZERO,),
    rare=False,
)
TYPICAL = Stage(
    name="typical_p",
    title="Typical",
    help="Keeps tokens whose surprisal is nearest to the entropy until they add up to p.",
    kind="filter",
    formula="those with |-log p - H| smallest until they add up to p",
    source="Meister et al. 2022",
    fields=(Field(name="typical_p", off=1.0, range=Range(0, 1), on=0.9, stops=lambda vocab_size: _MASS_STOPS),),
    run=typical_p,
    falling=_typical_falling,
    rare=False,
)
