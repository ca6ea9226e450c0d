"""Older snippets go on working under the names they import."""

import importlib

import pytest

import lmcore
import lmcore.corpus.occurring
from lmcore.moved import MOVED


@pytest.mark.parametrize("old", sorted(MOVED))
def test_an_old_name_is_the_module_of_today(old: str) -> None:
    assert importlib.import_module(old) is importlib.import_module(MOVED[old])


def test_names_that_lay_beside_what_moved() -> None:
    from lmcore.analysis.length import HELD_OUT_SEED

    from lmcore.analysis.tying import storage_of

    assert HELD_OUT_SEED == lmcore.corpus.HELD_OUT_SEED
    assert storage_of.__module__ == "lmcore.analysis.tying.storage"


def test_the_package_of_training_leaves_the_function_its_name() -> None:
    importlib.import_module("lmcore.training.builtin_models")
    assert callable(lmcore.train)
