"""Whatever goes wrong with a server is one sentence, and nothing that came before it is lost."""

from __future__ import annotations

import logging
import socket
import time

import pytest

import lmcore
from lmcore.engines import client as client_module
from lmcore.engines.config import EngineConfig
from lmcore.engines.drawing import Sampler
from lmcore.engines.engine import Engine
from lmcore.engines.errors import EngineError
from lmcore.generation.engine_run import EngineRun
from tests.engines.small_server import KEY, Behaviour, serving

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(client_module, "FIRST_PAUSE", 0.01)


@pytest.fixture
def behaviour():
    return Behaviour()


@pytest.fixture
def engine(behaviour):
    with serving(behaviour) as base_url:
        engine = Engine(EngineConfig("Tiny", base_url, "tiny", timeout=3.0))
        engine.capabilities  # noqa: B018 - asked while the server is well
        yield engine
        engine.close()


def failure(act) -> EngineError:
    with pytest.raises(EngineError) as caught:
        act()
    error = caught.value
    assert error.sentence.startswith("Tiny: ") and error.sentence.count(".") >= 1
    assert "\n" not in str(error)
    return error


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("429", "busy"),
        ("500", "failing"),
        ("503", "failing"),
        ("404", "no such model"),
        ("400", "refused"),
        ("context", "context too long"),
        ("not json", "unreadable"),
        ("no choices", "unreadable"),
        ("no log-probabilities", "no log-probabilities"),
        ("slow", "slow"),
        ("hang up", "unreachable"),
    ],
)
def test_each_fault_is_said(engine, behaviour, fault, kind):
    behaviour.fault = fault
    assert failure(lambda: engine.next("The king", 5)).kind == kind
    behaviour.fault = ""
    assert len(engine.next("The king", 5).best) == 5  # nothing stays broken


@pytest.mark.parametrize("fault", ["429", "503", "500", "hang up"])
def test_what_passes_is_asked_again_a_few_times(engine, behaviour, fault):
    before = len(behaviour.asked)
    behaviour.fault, behaviour.faults_left = fault, 2
    assert len(engine.next("The king", 5).best) == 5
    assert len(behaviour.asked) - before == 3
    behaviour.faults_left = 100
    failure(lambda: engine.next("The queen", 5))
    assert len(behaviour.asked) - before == 6  # three tries, and no more


@pytest.mark.parametrize("fault", ["404", "400", "context", "not json", "slow"])
def test_what_will_not_pass_is_asked_once(engine, behaviour, fault):
    before = len(behaviour.asked)
    behaviour.fault = fault
    failure(lambda: engine.next("The king", 5))
    assert len(behaviour.asked) - before == 1


def test_nobody_listens():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        engine = Engine(EngineConfig("Tiny", f"http://127.0.0.1:{unused.getsockname()[1]}/v1", "tiny"))
        assert failure(lambda: engine.capabilities).kind == "unreachable"
        engine.close()


@pytest.mark.parametrize(("served", "key", "kind"), [("other", "", "no such model"), ("tiny", KEY, "key refused")])
def test_a_model_or_a_key_that_does_not_fit(served, key, kind):
    with serving(Behaviour(served=served, key=key)) as base_url:
        engine = Engine(EngineConfig("Tiny", base_url, "tiny"))
        assert failure(lambda: engine.capabilities).kind == kind
        engine.close()


def test_a_key_that_is_not_set():
    engine = Engine(EngineConfig("Tiny", "http://127.0.0.1:1/v1", "tiny", key_variable="NO_SUCH_VARIABLE"))
    assert failure(lambda: engine.capabilities).kind == "no key"
    engine.close()


@pytest.mark.parametrize("fault", ["429", "500", "404", "400", "context", "stream error", "not json"])
def test_a_key_and_an_address_are_in_no_error_and_no_log(monkeypatch, caplog, fault):
    monkeypatch.setenv("TINY_KEY", KEY)
    behaviour = Behaviour(key=KEY)
    with serving(behaviour) as base_url, caplog.at_level(logging.DEBUG):
        config = EngineConfig("Tiny", base_url, "tiny", key_variable="TINY_KEY")
        engine = Engine(config)
        run = EngineRun(engine, "The king")  # the right key: the server is well
        behaviour.fault = fault
        run.start()
        assert run.wait(20)
        error = run.error
        assert error is not None
        monkeypatch.setenv("TINY_KEY", "sk-another-key-which-is-wrong")
        refused = failure(lambda: engine.next("The king", 5)) if fault == "429" else error
        engine.close()
        for said in (str(error), error.detail, repr(error), str(refused), repr(config), caplog.text):
            assert KEY not in said and "sk-another" not in said and "Bearer" not in caplog.text
        assert "10.1.2.3" not in str(error) and base_url not in str(error) and base_url not in repr(config)


def test_a_full_context_is_not_taken_for_the_end_of_the_text(engine):
    room = 3
    ids = lmcore.load("small-world").tokenizer.encode("The king").ids
    run = EngineRun(engine, "The king")
    run.prompt = (ids * engine.capabilities.context_length)[: engine.capabilities.context_length - room]
    run.sampler = Sampler(seed=1)
    run.start()
    assert run.wait(20)
    assert run.node.depth == room and run.ended is None
    assert run.error is not None and run.error.kind == "context too long"


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("stream broken", "broken off"),
        ("stream error", "broken off"),
        ("stream not json", "unreadable"),
        ("stream slow", "slow"),
    ],
)
def test_what_came_before_a_stream_failed_is_kept(engine, behaviour, fault, kind):
    run = EngineRun(engine, "The king")
    run.sampler = Sampler(seed=5)
    behaviour.fault, behaviour.faults_left = fault, 1
    run.start()
    assert run.wait(20)
    assert run.error is not None and run.error.kind == kind
    assert run.node.depth == behaviour.after
    kept = run.text(run.node)
    run.start()  # and it goes on from there
    assert run.wait(20)
    assert run.error is None and run.node.depth > behaviour.after
    assert run.text(run.node).startswith(kept)


def test_a_stopped_stream_is_stopped_at_the_server_too(engine, behaviour):
    behaviour.seconds_per_token = 0.05
    run = EngineRun(engine, "The king")
    run.max_new_tokens = 200
    run.start()
    until = time.monotonic() + 20
    while run.node.depth < 2 and time.monotonic() < until:
        time.sleep(0.01)
    run.stop()
    depth = run.node.depth
    assert 2 <= depth < 100
    while behaviour.at_work and time.monotonic() < until:
        time.sleep(0.01)
    assert behaviour.at_work == 0  # the closed connection ended it
    assert run.node.depth == depth and run.error is None
    assert run.wait(5)


def test_stop_does_not_wait_for_a_server_that_says_nothing(engine, behaviour):
    behaviour.fault = "slow"
    run = EngineRun(engine, "The king")
    run.start()
    time.sleep(0.2)
    run.stop()
    assert not run.running
    behaviour.fault = ""
    run.start()
    assert run.wait(20)
    assert run.error is None and run.node.depth > 0


def test_another_model_under_the_same_name(behaviour):
    with serving(behaviour) as base_url:
        engine = Engine(EngineConfig("Tiny", base_url, "tiny"))
        run = EngineRun(engine, "The king")
        run.max_new_tokens = 5
        run.start()
        assert run.wait(20) and run.node.depth == 5
        engine.check(after=0)  # it is still the same
        old = engine.next(engine.prompt("The king"), 3)
        behaviour.model = "small-world-none"
        assert failure(lambda: engine.check(after=0)).kind == "model changed"
        assert engine.next(engine.prompt("The king"), 3) != old
        run.max_new_tokens = 10
        run.start()
        assert run.wait(20)
        assert run.error is not None and run.error.kind == "model changed"
        assert run.node.depth == 5  # the former model's text is kept as it is
        engine.close()
