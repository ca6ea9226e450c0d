"""Training in the background: its states, its slots, and that the same settings give the same numbers."""

from __future__ import annotations

import gc
import itertools
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

import lmcore
from lmcore.corpus import Truth
from lmcore.training import TrainingStep, next_token_loss
from lmcore.training.background import BackgroundTraining
from lmcore.training.texts import SmallWorldText
from lmcore.training.trial import Trial, TrialSettings, grammar_loss

pytestmark = pytest.mark.slow

TOKENIZER = lmcore.builtin.tokenizer()
SMALL = TrialSettings(d_model=16, batch_size=2, steps=5)


def endless() -> Iterator[TrainingStep]:
    for number in itertools.count():
        time.sleep(0.002)
        yield TrainingStep(number, 1.0, 0.1, 1.0, 10)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)


def training(steps: Callable[[], Iterator[TrainingStep]] = endless, **options) -> BackgroundTraining:
    options = {"measure": lambda: None, "slots": threading.Semaphore(1), **options}
    return BackgroundTraining(steps, **options)


def n_steps(run: BackgroundTraining) -> int:
    return len(run.progress.steps)


def test_pause_holds_resume_goes_on_stop_ends_and_keeps_what_was_reached():
    run = training()
    until(lambda: n_steps(run) > 3)
    run.pause()
    assert run.asked_to_pause
    until(lambda: run.progress.state == "paused")
    reached = n_steps(run)
    time.sleep(0.1)
    assert n_steps(run) == reached
    run.resume()
    assert not run.asked_to_pause
    until(lambda: n_steps(run) > reached)
    run.stop()
    run.join(30)
    assert run.progress.state == "stopped" and not run.progress.alive
    assert [step.step for step in run.progress.steps] == list(range(n_steps(run)))


def test_stop_ends_a_paused_training():
    run = training()
    until(lambda: run.progress.state == "running")
    run.pause()
    until(lambda: run.progress.state == "paused")
    run.stop()
    run.join(30)
    assert run.progress.state == "stopped"


def test_a_second_training_waits_for_a_place_and_gets_that_of_a_paused_one():
    slots = threading.Semaphore(1)
    first = training(slots=slots)
    until(lambda: first.progress.state == "running")
    second = training(slots=slots)
    time.sleep(0.1)
    assert second.progress.state == "waiting" and n_steps(second) == 0
    first.pause()
    until(lambda: second.progress.state == "running")
    first.resume()
    until(lambda: first.progress.state == "waiting")
    second.stop()
    until(lambda: first.progress.state == "running")
    first.stop()
    for run in (first, second):
        run.join(30)
    assert slots.acquire(blocking=False) and not slots.acquire(blocking=False)  # each slot was given back once


def test_stopped_while_waiting():
    slots = threading.Semaphore(0)
    run = training(slots=slots)
    run.stop()
    run.join(30)
    assert run.progress.state == "stopped" and not slots.acquire(blocking=False)


def test_a_training_nobody_refers_to_ends():
    owned = [training()]
    until(lambda: owned[0].progress.state == "running")
    thread = owned[0]._thread
    owned.clear()
    gc.collect()
    thread.join(30)
    assert not thread.is_alive()


def test_a_failure_is_told():
    def broken() -> Iterator[TrainingStep]:
        raise ValueError("steps must be a whole number")
        yield

    slots = threading.Semaphore(1)
    run = training(broken, slots=slots)
    run.join(30)
    assert run.progress.state == "failed"
    assert str(run.progress.error) == "steps must be a whole number"
    assert slots.acquire(blocking=False)


def test_measured_before_every_n_steps_and_at_the_end():
    run = training(lambda: itertools.islice(endless(), 7), measure=lambda: "m", measure_every=3)
    run.join(30)
    assert run.progress.state == "finished"
    assert run.progress.measurements == ((0, "m"), (3, "m"), (6, "m"), (7, "m"))


def test_a_trial_repeats_itself_whatever_else_draws_random_numbers():
    def losses() -> list[float]:
        trial = Trial(SMALL, TOKENIZER, ())
        return [step.loss for step in trial.steps()]

    first = losses()
    torch.rand(5)
    state = torch.random.get_rng_state()
    assert losses() == first
    assert torch.equal(torch.random.get_rng_state(), state)  # and takes none from others
    assert len(set(first)) == 5


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("encoding", ["none", "learned", "sinusoidal", "relative", "rope", "alibi"])
def test_measurements_are_of_the_model_being_trained(encoding, tied):
    settings = TrialSettings(d_model=16, batch_size=2, steps=2, position_encoding=encoding, tie_embeddings=tied)
    trial = Trial(settings, TOKENIZER, ("今天天气",))
    with pytest.raises(ValueError, match="call steps"):
        trial.measure()
    steps = trial.steps()
    before = trial.measure()
    assert before.loss == pytest.approx(np.log(TOKENIZER.vocab_size), rel=0.05)  # it knows nothing yet
    list(steps)
    after = trial.measure()
    model, ids = trial._lm.model, SmallWorldText(TOKENIZER).held_out()
    with torch.no_grad():
        assert after.loss == pytest.approx(next_token_loss(model(ids[:, :-1]), ids).item(), rel=1e-5)
        wanted = model(torch.tensor(TOKENIZER.encode("今天天气").ids))[-1].softmax(-1)
    np.testing.assert_allclose(after.probs[0], wanted, atol=1e-6)
    assert after.loss != before.loss
    assert -1 <= after.sides.cosine <= 1 and after.sides.input_norms.shape == (TOKENIZER.vocab_size,)
    assert torch.equal(after.table, model.token_embedding.weight.detach().half())
    assert len(after.sample[0]) == 16
    assert sum(p.numel() for p in model.parameters()) == lmcore.parameters.count(trial.config).total


def test_grammar_loss_is_the_mean_over_the_held_out_tokens():
    truth = Truth(TOKENIZER)
    rows = SmallWorldText(TOKENIZER).held_out().tolist()
    wanted = -np.mean([truth.log_prob(row) for row in rows])
    assert grammar_loss(TOKENIZER) == pytest.approx(wanted)
    assert 0.3 < wanted < 0.8


def test_settings_out_of_range_are_named():
    with pytest.raises(ValueError, match="d_model"):
        Trial(TrialSettings(d_model=0), TOKENIZER, ())
    with pytest.raises(ValueError, match="learning_rate"):
        Trial(TrialSettings(learning_rate=0.0), TOKENIZER, ())


def test_a_training_uses_one_core_and_leaves_other_threads_alone():
    def thread_counts() -> list[int]:
        counts: list[int] = []
        other = threading.Thread(target=lambda: counts.append(torch.get_num_threads()))
        other.start()
        other.join()
        return [torch.get_num_threads(), *counts]

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        run = training(lambda: itertools.islice(endless(), 2), measure=torch.get_num_threads)
        run.join(30)
        assert [value for _done, value in run.progress.measurements] == [1, 1]
        assert thread_counts() == [2, 2]
    finally:
        torch.set_num_threads(before)
