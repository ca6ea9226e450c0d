"""The models in memory: one copy for all, a budget, and loadings that nobody waits for."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

import lmcore
from lmcore.loading import Doing, LoadingCancelled
from pages.common import models as models_module
from pages.common.models import Models, n_bytes

A, B, C = "small-world", "small-world-learned", "small-world-untied"


def load(name, said):
    return lmcore.load(name, progress=said)


def loaded(models, name):
    loading = models.start(name)
    assert loading.wait(30)
    return loading.model


@pytest.fixture
def gate(monkeypatch):
    """A loader that goes on telling its progress until it is let through."""
    monkeypatch.setattr(models_module, "_NOBODY_WAITS_AFTER", 0.5)
    let_through = threading.Event()

    def load_slowly(name, said):
        while not let_through.wait(0.02):
            said(Doing.READING_WEIGHTS, 0.5)
        return load(name, said)

    return load_slowly, let_through


def test_thirty_sessions_get_the_same_object_from_one_loading():
    loads = []

    def counted(name, said):
        loads.append(name)
        return load(name, said)

    models, found = Models(counted, 2**30), []
    sessions = [threading.Thread(target=lambda: found.append(loaded(models, A))) for _ in range(30)]
    for session in sessions:
        session.start()
    for session in sessions:
        session.join()
    assert len(found) == 30 and len({id(lm) for lm in found}) == 1 and loads == [A]
    assert models.get(A) is found[0]


def test_bytes_count_a_tied_matrix_once():
    tied, untied = lmcore.load(A), lmcore.load(C)
    assert n_bytes(tied) == 4 * lmcore.parameters.count(tied.config).total
    assert n_bytes(untied) - n_bytes(tied) == 4 * tied.config.vocab_size * tied.config.d_model


def test_the_least_recently_used_model_makes_room_and_its_memory_is_free():
    size = n_bytes(lmcore.load(A))
    models = Models(load, int(2.5 * size), loaded=lambda: (gc.collect(), gc.freeze()))
    loaded(models, A)
    gone = weakref.ref(loaded(models, B).model)
    models.get(A)  # used since
    loaded(models, C)
    assert models.names() == [A, C] and models.get(B) is None
    assert gone() is None, "something still holds the weights of the model that was given up"


def test_a_model_larger_than_the_budget_is_kept_alone():
    models = Models(load, 1)
    loaded(models, A)
    assert loaded(models, B) is models.get(B) and models.names() == [B]


@pytest.mark.slow
def test_a_cancelled_loading_ends_and_the_model_can_be_asked_for_again(gate):
    load_slowly, let_through = gate
    models = Models(load_slowly, 2**30)
    loading = models.start(A)
    assert not loading.wait(0.1) and (loading.what, loading.share) == (Doing.READING_WEIGHTS, 0.5)
    loading.cancel()
    assert loading._worker.join(10)
    assert isinstance(loading.error, LoadingCancelled) and models.names() == []
    let_through.set()
    assert loaded(models, A) is models.get(A)


@pytest.mark.slow
def test_a_loading_goes_on_while_another_session_waits(gate):
    load_slowly, let_through = gate
    models = Models(load_slowly, 2**30)
    loading = models.start(A)
    threading.Timer(2.0, let_through.set).start()
    loading.cancel()
    while not models.start(A).wait(0.1):  # the other session
        pass
    assert models.get(A) is not None


def test_a_loading_that_nobody_waits_for_ends_by_itself(gate):
    loading = Models(gate[0], 2**30).start(A)
    assert loading._worker.join(10) and isinstance(loading.error, LoadingCancelled)


def test_an_error_reaches_all_who_wait_and_the_other_models_stay():
    models = Models(load, 2**30)
    kept = loaded(models, A)
    loading = models.start("no such model")
    assert loading.wait(10) and loading.model is None
    assert "no model is called 'no such model'" in str(loading.error)
    assert models.get(A) is kept and models.names() == [A]
