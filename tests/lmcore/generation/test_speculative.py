"""Speculative decoding: the text is the target's, whatever drafts it."""

import numpy as np
import pytest
import torch

import lmcore
from lmcore import SamplingSettings
from lmcore.generation.speculative import (
    Speculation,
    acceptance,
    check_pair,
    residual,
    speculate,
    tokens_per_pass,
)
from lmcore.language_model import LanguageModel
from lmcore.sampling import History, chi_square, new_generator, reshape
from lmcore.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def models() -> tuple[LanguageModel, LanguageModel]:
    return lmcore.load("small-world"), lmcore.load("small-world-none")


def last(steps) -> Speculation:
    *_, found = steps
    return found


def test_what_is_drawn_is_distributed_as_the_target_exactly():
    rng = np.random.default_rng(0)
    for case in range(48):
        p, q = (torch.tensor(rng.dirichlet(np.full(7, 0.4))) for _ in range(2))
        if case % 3 == 0:
            p[:3] = 0
            p /= p.sum()
        if case % 4 == 0:
            q = torch.nn.functional.one_hot(torch.tensor(case % 7), 7).double()
        drafted = torch.where(q > 0, q * (p / q.clamp(min=1e-300)).clamp(max=1), 0.0)  # drawn from q, and accepted
        refused = 1 - drafted.sum()
        whole = drafted + refused * residual(p, q)
        torch.testing.assert_close(whole, p, rtol=0, atol=1e-12)
        assert acceptance(p, q) == pytest.approx(1 - float((p - q).abs().sum()) / 2, abs=1e-12)
        assert acceptance(p, q) == pytest.approx(float(drafted.sum()), abs=1e-12)


def test_the_worked_example_of_a_draft():
    p = torch.softmax(torch.tensor([2.3, 1.5, 3.8, 0.5, 1.2]).double(), 0)
    q = torch.tensor([0.1, 0.3, 0.4, 0.1, 0.1]).double()
    assert [round(float(each), 4) for each in residual(p, q)] == [0.1575, 0, 0.8425, 0, 0]
    assert round(acceptance(p, q), 4) == 0.6474
    one_hot = torch.tensor([0.0, 0, 1, 0, 0]).double()
    assert [round(float(each), 4) for each in residual(p, one_hot)] == [0.5135, 0.2307, 0, 0.0849, 0.1709]
    assert residual(p, p).equal(p)


def test_tokens_a_pass_are_the_mean_of_a_simulated_geometric_series():
    assert tokens_per_pass(0.8, 4) == pytest.approx((1 - 0.8**5) / (1 - 0.8), rel=1e-12)
    coins = np.random.default_rng(1).random((40_000, 4)) < 0.8
    drawn = 1 + np.cumprod(coins, axis=1).sum(axis=1)
    assert drawn.mean() == pytest.approx(tokens_per_pass(0.8, 4), abs=4 * drawn.std() / 200)


@pytest.mark.slow
def test_two_tokens_drawn_speculatively_have_the_targets_joint_distribution(models):
    target, draft = models
    ids = target.tokenizer.encode("The").ids
    settings = SamplingSettings(temperature=1.5, top_k=3)
    exact = torch.zeros(target.config.vocab_size, target.config.vocab_size, dtype=torch.float64)
    first = reshape(target(ids)[-1], settings, History(ids)).probs
    for token_id in first.nonzero().flatten().tolist():
        following = reshape(target([*ids, token_id])[-1], settings, History(ids, [token_id])).probs
        exact[token_id] = first[token_id] * following
    counts, generator = torch.zeros_like(exact), new_generator(3)
    far = SamplingSettings(temperature=2.5, top_k=6)  # often refused
    fates = set()
    for _ in range(250):
        asked = {"n_draft": 2, "max_new_tokens": 3, "generator": generator, "draft_settings": far}
        found = last(speculate(target, draft, ids, settings, **asked))
        fates |= {each.fate for each in found.rounds[0].drafts}
        counts[tuple(found.ids[:2])] += 1
    assert fates == {"accepted", "refused", "unread"}
    assert chi_square(counts.flatten(), exact.flatten()).p_value > 1e-3


@pytest.mark.parametrize("n_draft", [1, 3, 8])
@pytest.mark.parametrize("draft_temperature", [0.0, 1.0])
def test_greedy_speculation_gives_the_targets_greedy_text(models, n_draft, draft_temperature):
    target, draft = models
    ids = target.tokenizer.encode("I like").ids
    greedy = SamplingSettings(temperature=0)
    plain = [step.token_id for step in lmcore.generate(target, ids, greedy, max_new_tokens=30)]
    asked = {"n_draft": n_draft, "max_new_tokens": 30, "generator": new_generator(2)}
    drafted = SamplingSettings(temperature=draft_temperature)
    assert last(speculate(target, draft, ids, greedy, draft_settings=drafted, **asked)).ids == plain


def test_a_model_that_drafts_for_itself_is_always_accepted(models):
    target, _draft = models
    ids = target.tokenizer.encode("我").ids
    for settings in (SamplingSettings(seed=4), SamplingSettings(seed=4, mirostat=2, repetition_penalty=1.3)):
        found = last(speculate(target, target, ids, settings, n_draft=4, max_new_tokens=21))
        assert found.accepted == found.tested and found.expected_accepted == pytest.approx(found.tested, abs=1e-3)
        assert len(found.ids) == 21
        assert found.tokens_per_pass == 5 == round(found.expected_tokens_per_pass, 2)
        assert {each.origin for each in found.rounds} == {"bonus"}


def test_a_stop_token_among_the_drafts_ends_the_text(models):
    target, draft = models
    ids = target.tokenizer.encode("The king").ids
    greedy = SamplingSettings(temperature=0)
    plain = [step.token_id for step in lmcore.generate(target, ids, greedy, max_new_tokens=4)]
    stop = plain[2]
    assert stop not in plain[:2]
    found = last(speculate(target, target, ids, greedy, n_draft=6, max_new_tokens=40, stop_ids=[stop]))
    (only,) = found.rounds
    assert found.ids == plain[:3] and len(only.drafts) == 3 and only.token_id is None and not only.is_whole
    assert found.tokens_per_pass == 0  # no round is whole
    for seed in range(2):  # refused, or drawn by the target itself, it ends no text before its end
        settings, far = SamplingSettings(seed=seed), SamplingSettings(temperature=2.0)
        asked = {"n_draft": 6, "max_new_tokens": 20, "stop_ids": [stop], "draft_settings": far}
        found = last(speculate(target, draft, ids, settings, **asked))
        assert stop not in found.ids[:-1] and (found.ids[-1] == stop or len(found.ids) == 20)


def test_the_distributions_of_each_draft_are_those_of_both_models(models):
    target, draft = models
    ids = target.tokenizer.encode("The cat").ids
    settings = SamplingSettings(temperature=0.9, top_p=0.95, repetition_penalty=1.2, seed=1)
    found = last(speculate(target, draft, ids, settings, n_draft=3, max_new_tokens=20))
    text = []
    for each in found.rounds:
        before = list(text)
        for one in each.drafts:
            history = History(ids, before)
            p, q = (reshape(lm([*ids, *before])[-1], settings, history).probs for lm in models)
            assert one.p == pytest.approx(float(p[one.token_id]), abs=1e-5)
            assert one.q == pytest.approx(float(q[one.token_id]), abs=1e-5)
            assert one.acceptance == pytest.approx(acceptance(p, q), abs=1e-4)
            shown = list(one.pair.ids)
            np.testing.assert_allclose(one.pair.residual, residual(p, q)[shown], atol=1e-3)
            for kept, rest in zip((one.pair.p, one.pair.q, one.pair.residual), one.pair.rest, strict=True):
                assert sum(kept) + rest == pytest.approx(1, abs=1e-9)
            if one.uniform is not None:
                assert (one.uniform < one.p / one.q) == (one.fate == "accepted")
            before.append(one.token_id)
        text += each.ids
    assert found.ids == text and len(text) == 20
    again = last(speculate(target, draft, ids, settings, n_draft=3, max_new_tokens=20))
    assert again.ids == text  # the seed
    assert abs(found.accepted - found.expected_accepted) < 4 * found.deviation + 1e-9


def test_a_context_that_fills_ends_the_text(models):
    target, draft = models
    limit = target.config.context_length
    ids = target.tokenizer.encode("I").ids * (limit - 3)
    found = last(speculate(target, draft, ids, SamplingSettings(seed=0), n_draft=8, max_new_tokens=40))
    assert len(ids) + len(found.ids) == limit + 1  # the model need not read the last one


def test_what_does_not_fit_is_refused_in_a_sentence(models):
    target, draft = models
    ids = [1]
    with pytest.raises(ValueError, match="n_draft is 0; it must be a whole number from 1 to 16"):
        speculate(target, draft, ids, n_draft=0, max_new_tokens=1)
    with pytest.raises(ValueError, match="max_new_tokens is 0"):
        speculate(target, draft, ids, max_new_tokens=0)
    with pytest.raises(ValueError, match="a prompt here has from 1 to"):
        speculate(target, draft, [], max_new_tokens=1)
    with pytest.raises(TypeError, match="ids is text"):
        speculate(target, draft, "text", max_new_tokens=1)


def test_another_vocabulary_is_refused():
    lm = lmcore.load("small-world")
    other = Tokenizer.train([" other", " words"] * 3, 261)
    stranger = LanguageModel.__new__(LanguageModel)
    stranger.name, stranger.tokenizer = "stranger", other
    with pytest.raises(ValueError, match="stranger has 2.. tokens and small-world 1,600: a draft model needs"):
        check_pair(lm, stranger)
