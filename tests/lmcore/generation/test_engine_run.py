"""A text that a server draws is walked as one that a local model draws."""

import gc
import threading
import weakref

import pytest

import lmcore
from lmcore.engines.config import EngineConfig
from lmcore.engines.drawing import Sampler
from lmcore.engines.engine import Engine
from lmcore.generation.engine_run import EngineRun
from tests.engines.small_server import Behaviour, serving


@pytest.fixture(params=["id", "text"])
def behaviour(request):
    return Behaviour(names=request.param, late=request.param == "text")


@pytest.fixture
def run(behaviour):
    with serving(behaviour) as base_url:
        engine = Engine(EngineConfig("Tiny", base_url, "tiny"))
        run = EngineRun(engine, "The king")
        run.sampler, run.max_new_tokens = Sampler(seed=3), 5
        yield run
        engine.close()


@pytest.mark.slow
def test_the_same_settings_from_the_same_place_walk_to_what_is_there(run):
    run.start()
    assert run.wait(20) and run.error is None and run.end == "max_new_tokens"
    end, first = run.node, run.node.path()[0]
    run.go_to(run.tree.root)
    run.step()
    assert run.wait(20) and run.node is first and run.tip is end
    assert run.tree.leaves() == [end]
    other = next(
        each for each in first.among.best if run.can_take(each) and each.name not in (first.token_id, first.text)
    )
    run.take(run.tree.root, other, first.among)
    assert run.node.by_hand and run.node.settings is None and run.tree.leaves() == [end, run.node]
    run.take(
        run.tree.root, next(each for each in first.among.best if each.name in (first.token_id, first.text)), first.among
    )
    assert run.node is first  # taking what was drawn goes there


@pytest.mark.slow
def test_what_was_pruned_comes_back(run):
    run.start()
    assert run.wait(20)
    end, second = run.node, run.node.path()[1]
    run.prune(second)
    assert run.node is run.tip is second.parent
    run.undo_prune()
    assert run.node is run.tip is end


@pytest.mark.slow
def test_a_node_tells_what_its_piece_told(run):
    run.step()
    assert run.wait(20)
    node, lm = run.node, lmcore.load("small-world")
    assert (node.drawn.text, node.drawn.rank, node.drawn.log_prob) == (node.text, node.rank, node.log_prob)
    assert node.settings == Sampler(seed=3) and node.depth == 1 and run.tree.root.drawn is None
    if node.token_id is not None:
        assert node.token == lm.tokenizer.token_bytes(node.token_id)


@pytest.mark.slow
def test_a_forgotten_run_ends(behaviour):
    with serving(behaviour) as base_url:
        engine = Engine(EngineConfig("Tiny", base_url, "tiny"))
        before = set(threading.enumerate())
        run = EngineRun(engine, "The king")
        run.max_new_tokens = 200
        behaviour.seconds_per_token = 0.02
        run.start()
        thread = next(each for each in threading.enumerate() if each.name == "generation" and each not in before)
        reference = weakref.ref(run)
        del run
        gc.collect()
        thread.join(10)
        assert not thread.is_alive() and reference() is None
        engine.close()
