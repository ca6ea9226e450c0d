"""An engine says of a model what the model itself says, whichever way its server speaks."""

from __future__ import annotations

import gc
import math

import pytest
import torch

import lmcore
from lmcore.distribution import log_softmax, rank
from lmcore.engines.agreement import agreement
from lmcore.engines.config import EngineConfig
from lmcore.engines.drawing import Sampler
from lmcore.engines.engine import Engine
from lmcore.engines.top_tokens import top_tokens
from tests.engines.small_server import Behaviour, serving

TEXTS = ["The weather today is", "今天天气", "a😊b 龘"]
WAYS = {
    "by id": Behaviour(),
    "whole vocabulary": Behaviour(most=-1),
    "by text, late": Behaviour(names="text", late=True, most=-1),
    "by text": Behaviour(names="text"),
    "without a description": Behaviour(describes=False),
}


@pytest.fixture(scope="module")
def lm():
    return lmcore.load("small-world")


@pytest.fixture(params=WAYS, scope="module")
def way(request):
    return request.param


@pytest.fixture(scope="module")
def engine(way):
    with serving(WAYS[way]) as base_url:
        engine = Engine(EngineConfig("Tiny", base_url, "tiny"))
        yield engine
        engine.close()


@pytest.mark.slow
def test_what_it_can_do_is_found(engine, way, lm):
    found = engine.capabilities
    by_id = way in ("by id", "whole vocabulary", "without a description")
    assert found.names == ("id" if by_id else "text")
    assert found.takes_ids == by_id
    assert found.whole_vocabulary == (way == "whole vocabulary")
    assert found.vocab_size == (lm.config.vocab_size if by_id else 0)
    assert found.context_length == lm.config.context_length
    assert found.processed is False
    expected = {"by text, late": "by text, one place late", "by text": "by text"}
    assert found.prompt_scores == expected.get(way, "by id")
    if way == "by id":
        assert found.max_log_probs == 50
        assert found.defaults["top_k"] == 40
    if way == "without a description":
        assert found.fields is None and found.max_log_probs == 50


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS)
def test_tokens(engine, lm, text):
    found, expected = engine.tokenize(text), lm.tokenizer.encode(text)
    assert list(found.ids) == expected.ids
    assert found.adds_up
    assert [end for _start, end in found.groups][-1] == len(expected.ids)
    for (first, end), shared in zip(found.groups, found.shared, strict=True):
        assert shared.encode() == b"".join(expected.tokens[first:end])


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS)
def test_what_may_follow_is_the_models(engine, lm, text):
    log_probs = log_softmax(lm(lm.tokenizer.encode(text).ids)[-1])
    found = engine.next(engine.prompt(text), 20)
    assert found.merged == 0
    order = torch.sort(log_probs, descending=True, stable=True).indices.tolist()
    for each in found.best:
        assert each.log_prob == pytest.approx(float(log_probs[order[each.rank - 1]]), abs=1e-4)
        if each.token_id is not None:
            assert each.log_prob == pytest.approx(float(log_probs[each.token_id]), abs=1e-4)
    # What follows from them must hold of the whole: the tail is no larger than the last one told.
    known = found.partial(lm.config.vocab_size)
    assert known.tail_mass == pytest.approx(1 - sum(math.exp(each.log_prob) for each in found.best), abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS)
def test_how_the_prompt_was_foreseen_is_the_models(engine, lm, text):
    ids = lm.tokenizer.encode(text).ids
    log_probs = log_softmax(lm(ids))
    tokens, following = engine.prompt_scores(engine.prompt(text), 20)
    assert len(tokens) == len(ids)
    told = 0
    for position in range(1, len(ids)):
        token, row = tokens[position], log_probs[position - 1]
        if token.token_id is not None:
            assert token.token_id == ids[position]
            assert token.rank == rank(row, ids[position])
        # A token that is part of a character shares its name with others, and only its text is known.
        name = lm.tokenizer.token_bytes(ids[position]).decode("utf-8", "ignore")
        if token.log_prob is not None and (token.token_id is not None or name):
            told += 1
            same = [t for t in range(len(row)) if lm.tokenizer.token_bytes(t).decode("utf-8", "ignore") == name]
            allowed = [ids[position]] if token.token_id is not None else same
            assert any(token.log_prob == pytest.approx(float(row[t]), abs=1e-4) for t in allowed)
        if token.foreseen is not None and token.foreseen.best:
            assert token.foreseen.best[0].log_prob <= float(row.max()) + 1e-4
    if text == TEXTS[0]:
        assert told == len(ids) - (2 if engine.capabilities.prompt_scores.endswith("late") else 1)
    assert following.best == engine.next(engine.prompt(text), 20).best


def test_the_same_weights_agree(engine, lm):
    text = "The weather today is"
    log_probs = log_softmax(lm(lm.tokenizer.encode(text).ids)[-1])
    found = agreement(engine.next(engine.prompt(text), 20), log_probs, lm.tokenizer)
    assert len(found.rows) == 20
    assert found.largest_difference < 1e-4
    assert [row.rank_here for row in found.rows] == [row.rank_there for row in found.rows]


@pytest.mark.slow
def test_the_whole_vocabulary_is_the_models_distribution(lm):
    with serving(Behaviour(most=-1)) as base_url:
        engine = Engine(EngineConfig("Tiny", base_url, "tiny"))
        ids = lm.tokenizer.encode("我喜欢").ids
        whole = engine.next(tuple(ids), -1).by_id(lm.config.vocab_size)
        torch.testing.assert_close(whole.double(), log_softmax(lm(ids)[-1]), atol=1e-4, rtol=0)
        engine.close()


def test_what_a_server_draws_is_kept_with_what_it_was_among(engine, lm):
    prompt = engine.prompt("The king")
    drawn = engine.draw(prompt, Sampler(temperature=0.0), 5)
    log_probs = log_softmax(lm(lm.tokenizer.encode("The king").ids)[-1])
    assert drawn[0].log_prob == pytest.approx(float(log_probs.max()), abs=1e-4)
    assert drawn[0].rank == 1
    assert len(drawn[0].among.best) + drawn[0].among.merged == 5


@pytest.mark.slow
def test_tokens_that_come_in_one_event_have_each_its_own_text(lm):
    with serving(Behaviour(together=3)) as base_url:
        engine, drawn = Engine(EngineConfig("Tiny", base_url, "tiny")), []
        engine.stream(engine.prompt("The king"), Sampler(seed=3), 5, 6, lambda token: not drawn.append(token)).result()
        engine.close()
    assert len(drawn) == 6
    assert [token.text.encode() for token in drawn] == [lm.tokenizer.token_bytes(token.token_id) for token in drawn]


@pytest.mark.slow
def test_every_setting_is_sent_so_that_no_default_is_at_work():
    behaviour = Behaviour()
    with serving(behaviour) as base_url:
        engine = Engine(EngineConfig("Tiny", base_url, "tiny"))
        engine.draw(engine.prompt("I like"), Sampler(temperature=0.7, top_p=0.9, seed=3), 5)
        asked = behaviour.asked[-1]
        assert {name: asked[name] for name in ("temperature", "top_p", "top_k", "seed")} == {
            "temperature": 0.7,
            "top_p": 0.9,
            "top_k": 0,
            "seed": 3,
        }
        engine.close()


@pytest.mark.slow
def test_processed_log_probabilities_are_noticed():
    with serving(Behaviour(processed=True)) as base_url:
        engine = Engine(EngineConfig("Tiny", base_url, "tiny"))
        assert engine.capabilities.processed is True
        engine.close()


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS)
def test_the_beginning_of_a_text_is_what_the_model_saw_up_to_there(engine, lm, text):
    ids = lm.tokenizer.encode(text).ids
    told = 0
    for count in range(1, len(ids) + 1):
        prompt = engine.beginning(text, count)
        if prompt is None:
            assert not engine.capabilities.takes_ids and count < len(ids)
            continue
        told += 1
        expected = log_softmax(lm(ids[:count])[-1]).max().item()
        assert engine.next(prompt, 1).best[0].log_prob == pytest.approx(expected, abs=1e-4)
    assert told == len(ids) if engine.capabilities.takes_ids else told >= 2


def test_the_candidates_of_a_long_run_are_not_walked_when_garbage_is_collected() -> None:
    found = top_tokens({f"token_id:{n}": -float(n) for n in range(20)}, 20)
    gc.collect()
    assert not any(gc.is_tracked(column) for column in (found.log_probs, found.token_ids, found.texts))
    assert [(each.rank, each.token_id) for each in found.best] == [(n + 1, n) for n in range(20)]
    assert found.rank_of("", 7) == 8 and found.rank_of("", 99) is None
