"""Texts drawn as a batch are those drawn one by one."""

from dataclasses import replace

import pytest

import lmcore
from lmcore.generation.continuations import continuations

SETTINGS = lmcore.SamplingSettings(temperature=0.9, top_p=0.95, repetition_penalty=1.1, seed=2**64 - 2)


@pytest.fixture(scope="module")
def lm() -> lmcore.LanguageModel:
    return lmcore.load("small-world")


@pytest.mark.slow
@pytest.mark.parametrize("settings", [SETTINGS, lmcore.SamplingSettings(temperature=1.5, seed=3)])
def test_each_text_is_that_of_generate_with_its_seed(
    lm: lmcore.LanguageModel, settings: lmcore.SamplingSettings
) -> None:
    ids = lm.tokenizer.encode("The weather").ids
    *steps, last = continuations(lm, ids, settings, 6, 25, stop_ids=[0])
    assert [text.seed for text in last.texts] == [(settings.seed + i) % 2**64 for i in range(6)]
    for text in last.texts:
        alone = replace(settings, seed=text.seed)
        expected = list(lmcore.generate(lm, ids, alone, max_new_tokens=25, stop_ids=[0]))
        assert list(text.ids) == [step.token_id for step in expected]
        own = [-float(lmcore.distribution.loss_nats(step.logits, step.token_id)) for step in expected]
        assert list(text.log_probs) == pytest.approx(own, abs=1e-4)
        assert text.ended == (text.ids[-1] == 0)
    assert len({text.ids for text in last.texts}) > 1
    assert [step.step for step in steps] == list(range(1, len(steps) + 1))


def test_some_of_them_end_before_others(lm: lmcore.LanguageModel) -> None:
    newline = lm.tokenizer.encode("\n").ids
    ids = lm.tokenizer.encode("今天天气").ids
    *_, last = continuations(lm, ids, lmcore.SamplingSettings(seed=1), 8, 40, newline)
    lengths = {len(text.ids) for text in last.texts}
    assert len(lengths) > 1 and all(text.ended for text in last.texts)


def test_bad_requests_are_refused(lm: lmcore.LanguageModel) -> None:
    for wrong, sentence in (
        (([5], lmcore.SamplingSettings(), 2, 2), "seed is None"),
        (([5], SETTINGS, 0, 2), "n is 0"),
        (([], SETTINGS, 2, 2), "0 tokens"),
        (([5] * 511, SETTINGS, 2, 2), "context_length = 512"),
    ):
        with pytest.raises(ValueError, match=sentence):
            next(continuations(lm, *wrong))
