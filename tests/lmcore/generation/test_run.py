"""Running, stopping, going back and branching lose nothing and give the same text as stepping."""

import threading
import time

import pytest
import torch

import lmcore
from lmcore.generation.run import GenerationRun
from lmcore.generation.tree import Node

SETTINGS = lmcore.SamplingSettings(temperature=0.9, seed=11)


@pytest.fixture(scope="module")
def lm() -> lmcore.LanguageModel:
    torch.manual_seed(1)
    tokenizer = lmcore.builtin.tokenizer()
    config = lmcore.ModelConfig(
        vocab_size=tokenizer.vocab_size, d_model=32, n_layers=2, n_heads=4, context_length=64, init_std=0.3
    )
    return lmcore.LanguageModel("random", lmcore.Model(config), tokenizer)


def make(lm: lmcore.LanguageModel, n: int = 12, stop_ids: tuple[int, ...] = ()) -> GenerationRun:
    run = GenerationRun(lm, [5, 6, 7], stop_ids, threading.RLock())
    run.settings, run.max_new_tokens = SETTINGS, n
    return run


def wait(run: GenerationRun) -> None:
    while run.running:
        time.sleep(0.01)
    assert run.error is None


def text(run: GenerationRun) -> list[int]:
    return run.tree.ids(run.node)


def test_a_run_gives_the_text_of_steps_and_of_generate(lm: lmcore.LanguageModel) -> None:
    running, stepping = make(lm), make(lm)
    running.start()
    wait(running)
    for _ in range(20):
        stepping.step()
    assert running.end == stepping.end == "max_new_tokens"
    expected = [step.token_id for step in lmcore.generate(lm, [5, 6, 7], SETTINGS, max_new_tokens=12)]
    assert text(running) == text(stepping) == [5, 6, 7, *expected]


@pytest.mark.slow
def test_stop_waits_for_the_token_and_keeps_everything(lm: lmcore.LanguageModel) -> None:
    run = make(lm, 60)
    run.tokens_per_second = 20
    run.start()
    while run.node.depth < 3:
        time.sleep(0.005)
    run.stop()
    assert not run.running
    reached = text(run)
    assert 3 <= run.node.depth < 60
    run.tokens_per_second = 0
    run.start()  # goes on
    wait(run)
    assert text(run)[: len(reached)] == reached and run.node.depth == 60
    assert run.tree.leaves() == [run.node]


def test_a_slow_pace_does_not_hold_up_stop(lm: lmcore.LanguageModel) -> None:
    run = make(lm)
    run.tokens_per_second = 1e-6  # the next token would come in eleven days
    run.start()
    while run.node.depth < 1:
        time.sleep(0.005)
    run.stop()
    assert not run.running and run.node.depth == 1


def test_going_back_keeps_the_branch_in_view_until_another_is_taken(lm: lmcore.LanguageModel) -> None:
    run = make(lm)
    run.start()
    wait(run)
    end, path = run.node, run.tree.path(run.node)
    run.go_to(path[3])
    assert run.node is path[3] and run.tip is end and run.end == ""
    run.step()
    assert run.node is path[4] and run.tip is end  # the same seed, the same token
    other = (path[4].token_id + 1) % lm.config.vocab_size
    run.take(path[3], other)
    assert run.node is run.tip and run.node.token_id == other and run.node.by_hand
    run.start()
    wait(run)
    assert run.tree.leaves() == [end, run.tip]
    run.show_branch(end)
    assert text(run) == run.tree.ids(end) and run.end == "max_new_tokens"


@pytest.mark.slow
def test_settings_changed_while_running_hold_from_the_next_token(lm: lmcore.LanguageModel) -> None:
    run = make(lm, 60)
    run.tokens_per_second = 50
    run.start()
    while run.node.depth < 2:
        time.sleep(0.005)
    run.settings = cold = lmcore.SamplingSettings(temperature=0.0, seed=11)
    run.tokens_per_second = 0
    wait(run)
    used = [node.settings for node in run.tree.path(run.node)]
    assert used[0] == SETTINGS and used[-1] == cold
    assert used == sorted(used, key=lambda settings: settings == cold)  # one change, no way back


@pytest.mark.slow
def test_a_stop_token_ends_the_text(lm: lmcore.LanguageModel) -> None:
    whole = make(lm)
    whole.start()
    wait(whole)
    fourth = text(whole)[6]
    run = make(lm, stop_ids=(fourth,))
    run.start()
    wait(run)
    assert run.end == "stop token" and run.node.token_id == fourth
    assert text(run) == text(whole)[: text(whole).index(fourth, 3) + 1]
    depth = run.node.depth
    run.step()
    assert run.node.depth == depth


def test_a_stop_id_at_the_prompts_end_does_not_end_it(lm: lmcore.LanguageModel) -> None:
    run = make(lm, stop_ids=(7, -1))
    assert run.end == ""


def test_the_context_can_be_full(lm: lmcore.LanguageModel) -> None:
    run = GenerationRun(lm, [5] * 63)
    run.max_new_tokens = 10
    run.settings = SETTINGS
    run.start()
    wait(run)
    assert run.end == "context full" and run.node.depth == 2


def test_an_error_in_the_thread_is_kept(lm: lmcore.LanguageModel) -> None:
    run = make(lm)
    run.settings = lmcore.SamplingSettings(seed=1, logit_bias={10**6: 1.0})
    run.start()
    while run.running:
        time.sleep(0.01)
    assert "1000000" in str(run.error)


def test_pruning_moves_the_place_and_undo_brings_all_back(lm: lmcore.LanguageModel) -> None:
    run = make(lm)
    run.start()
    wait(run)
    end = run.node
    fork = run.tree.path(end)[3]
    run.take(fork, (run.tree.path(end)[4].token_id + 1) % lm.config.vocab_size)
    taken = run.node
    run.step()
    branch = run.node
    run.prune(taken)
    assert run.node is fork and run.tip is end and run.tree.leaves() == [end]
    run.prune(run.tree.path(end)[0])
    assert run.node is run.tip is run.tree.root and run.tree.leaves() == [run.tree.root]
    run.undo_prune()
    assert run.node is run.tip is end
    run.undo_prune()
    assert run.node is run.tip is branch and run.tree.leaves() == [end, branch] and run.pruned == []


def test_pruning_another_branch_leaves_the_place(lm: lmcore.LanguageModel) -> None:
    run = make(lm)
    run.start()
    wait(run)
    end = run.node
    run.take(run.tree.path(end)[3], (run.tree.path(end)[4].token_id + 1) % lm.config.vocab_size)
    here = run.node
    run.prune(run.tree.branch_start(end))
    assert run.node is run.tip is here


def test_stop_acts_while_the_model_is_busy(lm: lmcore.LanguageModel) -> None:
    lock = threading.Lock()
    run = GenerationRun(lm, [5, 6, 7], (), lock)
    run.settings = SETTINGS
    with lock:  # the model is busy with something else
        run.start()
        run.ask_to_stop()
        assert not run.running
    run.stop()
    assert run.node is run.tree.root and run.tree.leaves() == [run.tree.root] and run.error is None


def test_a_token_under_way_when_stop_comes_is_not_appended(lm: lmcore.LanguageModel) -> None:
    run = make(lm)
    compute = run.tree.next_logits

    def asked_meanwhile(node: Node, use_cache: bool = True) -> torch.Tensor:
        if node.depth == 4:
            run.ask_to_stop()
        return compute(node, use_cache)

    run.tree.next_logits = asked_meanwhile  # type: ignore[method-assign]
    run.start()
    while run.running:
        time.sleep(0.005)
    run.stop()
    assert run.node.depth == 4 and run.tree.leaves() == [run.node] and run.error is None
    del run.tree.next_logits
    run.start()  # and comes as it would have come
    wait(run)
    assert text(run)[3:] == [step.token_id for step in lmcore.generate(lm, [5, 6, 7], SETTINGS, max_new_tokens=12)]


def test_a_forgotten_generation_ends(lm: lmcore.LanguageModel) -> None:
    before = set(threading.enumerate())
    run = make(lm, 60)
    run.tokens_per_second = 50
    run.start()
    (thread,) = set(threading.enumerate()) - before
    tree = run.tree
    while not tree.root.children:
        time.sleep(0.005)
    del run
    thread.join(10)
    assert not thread.is_alive() and len(tree.nodes()) < 61


def test_the_latest_distribution_is_at_hand_while_the_model_is_busy(lm: lmcore.LanguageModel) -> None:
    lock = threading.Lock()
    run = GenerationRun(lm, [5, 6, 7], (), lock)
    run.settings = SETTINGS
    run.step()
    with lock:
        found = run.result(run.node)
    run.step()  # now another is the latest, and this one is computed anew
    again = run.result(run.node.parent)
    assert again is not found and torch.equal(again.probs, found.probs)


def test_a_replay_draws_what_the_settings_draw_and_puts_the_rest_there_by_hand(lm: lmcore.LanguageModel) -> None:
    run, again = make(lm), make(lm)
    for _ in range(3):
        run.step()
    drawn = text(run)[3:]
    other = (drawn[1] + 1) % lm.config.vocab_size
    again.replay(drawn)
    assert text(again)[3:] == drawn and not any(node.by_hand for node in again.node.path())
    again.replay([drawn[0], other])
    assert [(node.token_id, node.by_hand) for node in again.node.path()] == [(drawn[0], False), (other, True)]
    again.replay([7] * 100)
    assert again.node.depth == again.max_new_tokens  # and no further
