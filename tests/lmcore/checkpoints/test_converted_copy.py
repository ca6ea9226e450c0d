"""The converted copy makes the same model, and whatever is wrong with it or the disk costs nothing but time."""

from __future__ import annotations

import copy
import json
import os
import resource
import time

import pytest
import torch
from safetensors.torch import save_file

import lmcore
from lmcore.checkpoints import converted_copy
from lmcore.checkpoints.weights import own_tensors
from lmcore.loading import Doing, LoadingCancelled
from tests.lmcore.checkpoints.tiny_gguf import write_gguf

pytestmark = pytest.mark.slow


@pytest.fixture
def source(tmp_path):
    write_gguf("gemma3", tmp_path / "tiny.gguf")
    return tmp_path / "tiny.gguf"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "glass-box-lm"


def load(path, dtype=torch.float32):
    """Load a model; return it and what was said meanwhile."""
    said = []
    lm = lmcore.load(path, dtype, lambda what, share: said.append((what, share)))
    converted_copy.finish()
    return lm, [what for what, _ in said]


def same(a, b):
    pairs = zip(own_tensors(a.model).items(), own_tensors(b.model).items(), strict=True)
    return a.config == b.config and all(n == m and x.dtype == y.dtype and torch.equal(x, y) for (n, x), (m, y) in pairs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_second_start_reads_the_copy_and_is_the_same(source, cache, dtype):
    first, said = load(source, dtype)
    assert Doing.READING_WEIGHTS in said
    (folder,) = cache.iterdir()
    assert sorted(path.name for path in folder.iterdir()) == ["model.json", "model.safetensors"]
    second, said = load(source, dtype)
    assert Doing.READING_WEIGHTS not in said and Doing.CHECKING_COPY in said
    assert same(first, second)
    text = "the cat\n今天天气 😊"
    assert first.tokenizer.encode(text) == second.tokenizer.encode(text)
    assert torch.equal(first([1, 2, 3]), second([1, 2, 3]))
    assert second.model.head.weight is second.model.token_embedding.weight


@pytest.mark.parametrize("broken", ["model.safetensors", "model.json"])
@pytest.mark.parametrize("how", ["cut", "flipped", "gone"])
def test_a_broken_copy_is_replaced(source, cache, broken, how):
    first, _ = load(source)
    (folder,) = cache.iterdir()
    data = bytearray((folder / broken).read_bytes())
    if how == "gone":
        (folder / broken).unlink()
    elif how == "cut":
        (folder / broken).write_bytes(data[: len(data) // 2])
    else:
        data[len(data) - 60] ^= 4
        (folder / broken).write_bytes(data)
    second, said = load(source)
    if not (broken == "model.json" and how == "flipped"):  # one letter of a digest or a path: either outcome is right
        assert Doing.READING_WEIGHTS in said
    assert same(first, second)
    assert Doing.READING_WEIGHTS not in load(source)[1]


def test_weights_changed_while_the_copy_is_written_are_not_read_back(source, cache):
    first = lmcore.load(source)
    kept = copy.deepcopy(first)
    with torch.no_grad():  # perhaps while the thread writes, and else as if it had been
        first.model.final_norm.weight.data[3] += 1
    converted_copy.finish()
    (folder,) = cache.iterdir()
    save_file({name: t.detach() for name, t in own_tensors(first.model).items()}, folder / "model.safetensors")
    second, said = load(source)
    assert Doing.READING_WEIGHTS in said and same(second, kept)


def test_a_copy_of_what_the_file_was_before_is_not_used(source, cache):
    load(source)
    write_gguf("llama", source)
    os.utime(source, ns=(1, 1))
    lm, said = load(source)
    assert Doing.READING_WEIGHTS in said and not lm.config.qk_norm
    (folder,) = cache.iterdir()  # the older copy is gone
    assert json.loads((folder / "model.json").read_text())["config"]["qk_norm"] is False


def test_a_copy_of_a_file_that_is_gone_goes_when_another_is_written(source, cache, tmp_path):
    load(source)
    (before,) = cache.iterdir()
    source.rename(tmp_path / "elsewhere.gguf")
    load(tmp_path / "elsewhere.gguf")
    assert not before.exists() and len(list(cache.iterdir())) == 1


def test_what_a_killed_conversion_left_is_removed_a_day_later(source, cache):
    for name, age in (("unfinished-old", 2 * 86_400), ("unfinished-new", 60)):
        (cache / name).mkdir(parents=True)
        os.utime(cache / name, (time.time() - age,) * 2)
    load(source)
    assert not (cache / "unfinished-old").exists() and (cache / "unfinished-new").exists()


def test_no_permission_costs_nothing(source, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert load(source)[0].config.n_layers == 7


def test_a_disk_that_is_full_midway_costs_nothing(source, cache):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))  # writing further is an OSError, as on a full disk
    try:
        assert load(source)[0].config.n_layers == 7
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(cache.iterdir()) == []


def test_loading_can_be_cancelled_at_any_moment_and_leaves_nothing(source, cache):
    _, said = load(source)
    moments = len(said)
    (folder,) = cache.iterdir()
    for moment in range(0, moments, 7):
        if folder.exists():
            for path in folder.iterdir():
                path.unlink()
            folder.rmdir()
        calls = []

        def progress(what, share, calls=calls, moment=moment):
            calls.append(what)
            if len(calls) > moment:
                raise LoadingCancelled

        with pytest.raises(LoadingCancelled):
            lmcore.load(source, progress=progress)
        converted_copy.finish()
        assert list(cache.iterdir()) == []
    assert moments > 14
    assert load(source)[0].config.n_layers == 7


def test_progress_never_goes_back_within_one_thing(source, cache):
    said = []
    lmcore.load(source, progress=lambda what, share: said.append((what, share)))
    assert all(0 <= share <= 1 for _, share in said)
    for (what, before), (next_what, after) in zip(said, said[1:], strict=False):
        assert what != next_what or before <= after
    assert (Doing.READING_WEIGHTS, 1.0) in said
