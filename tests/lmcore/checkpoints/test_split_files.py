"""Models in several files are joined, whichever part is named, or a sentence says which part is missing."""

from __future__ import annotations

import re

import gguf
import pytest
import torch

import lmcore
from lmcore.checkpoints.gguf_file import GGUFFile
from tests.lmcore.checkpoints.tiny import write_folder
from tests.lmcore.checkpoints.tiny_gguf import write_gguf

IDS = [1, 2, 3, 200]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def split(tmp_path):
    """A folder with a model of 3 files as llama.cpp's gguf-split writes them, and its logits as one file."""
    (tmp_path / "whole").mkdir()
    (tmp_path / "split").mkdir()
    write_gguf("llama", tmp_path / "whole" / "tiny.gguf")
    file = GGUFFile([tmp_path / "whole" / "tiny.gguf"])
    names = list(file.shapes())
    for number in range(3):
        path = tmp_path / "split" / f"tiny-{number + 1:05}-of-00003.gguf"
        writer = gguf.GGUFWriter(path, "llama" if number == 0 else "")
        writer.add_uint16("split.no", number)
        writer.add_uint16("split.count", 3)
        writer.add_int32("split.tensors.count", len(names))
        for name, value in file.metadata.items() if number == 0 else ():
            if name != "general.architecture":
                add = {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
                add.get(type(value), writer.add_array)(name, value)
        for name in names[number::3]:
            writer.add_tensor(name, file.read(name, torch.float32).numpy())
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    return tmp_path / "split", lmcore.load(tmp_path / "whole" / "tiny.gguf")(IDS)


@pytest.mark.slow
def test_any_part_or_the_folder_stands_for_the_whole(split, monkeypatch):
    folder, logits = split
    for path in (*sorted(folder.iterdir()), folder):
        lm = lmcore.load(path)
        assert torch.equal(lm(IDS), logits), path
        assert lm.name == ("split" if path == folder else "tiny")
    monkeypatch.setenv("GLASS_BOX_LM_MODELS", str(folder))
    assert [model.name for model in lmcore.available()].count("tiny") == 1
    assert torch.equal(lmcore.load("tiny")(IDS), logits)


def test_a_part_that_is_missing_is_named(split):
    folder, _ = split
    (folder / "tiny-00002-of-00003.gguf").unlink()
    for path in (folder / "tiny-00003-of-00003.gguf", folder):
        with pytest.raises(ValueError, match="one of 3 parts of a model, and tiny-00002-of-00003.gguf is missing"):
            lmcore.load(path)


def test_a_part_under_another_name_says_what_it_is(split):
    folder, _ = split
    for number, words in ((1, "x.gguf is part 1 of 3 of a model"), (2, "x.gguf is part 2 of 3 of a model")):
        (folder / f"tiny-0000{number}-of-00003.gguf").rename(folder / "x.gguf")
        with pytest.raises(ValueError, match=re.escape(words)):
            lmcore.load(folder / "x.gguf")


def test_parts_in_another_order_are_refused(split):
    folder, _ = split
    first, second = (folder / f"tiny-0000{number}-of-00003.gguf" for number in (1, 2))
    first.rename(folder / "kept")
    second.rename(first)
    (folder / "kept").rename(second)
    with pytest.raises(ValueError, match="are not the parts of one model in order"):
        lmcore.load(folder)


def test_a_folder_with_a_gguf_file_loads_and_one_with_several_asks_which(split, tmp_path):
    assert torch.equal(lmcore.load(tmp_path / "whole")(IDS), split[1])
    (tmp_path / "whole" / "mmproj-tiny.gguf").write_bytes(b"sees pictures")
    assert torch.equal(lmcore.load(tmp_path / "whole")(IDS), split[1])
    (tmp_path / "whole" / "other.gguf").write_bytes(b"")
    with pytest.raises(ValueError, match="whole holds several models, other, tiny; give the path of one file"):
        lmcore.load(tmp_path / "whole")


def test_shards_are_found_without_their_index(tmp_path):
    reference = write_folder("qwen3", tmp_path, max_shard_size="40KB")
    (tmp_path / "model.safetensors.index.json").unlink()
    with torch.inference_mode():
        torch.testing.assert_close(lmcore.load(tmp_path)(IDS), reference(torch.tensor([IDS])).logits[0])
    next(iter(tmp_path.glob("model-00002-*.safetensors"))).unlink()
    with pytest.raises(ValueError, match=r"parts of a model, and model-00002-of-\d+.safetensors is missing"):
        lmcore.load(tmp_path)


def test_a_name_from_a_servers_folder_says_what_it_needs():
    with pytest.raises(ValueError, match="environment variable GLASS_BOX_LM_MODELS names that folder; here it is not"):
        lmcore.load("qwen")


def test_the_card_says_what_the_file_is(tmp_path):
    write_gguf("llama", tmp_path / "tiny.gguf", gguf.GGMLQuantizationType.Q8_0)
    card = lmcore.load(tmp_path / "tiny.gguf").card
    assert (card.family, card.filename, card.default_splitting) == ("llama", "tiny.gguf", False)
    assert set(card.storage) == {"F32", "Q8_0"} and card.storage["Q8_0"].bits_per_weight == 8.5
    write_folder("llama", tmp_path)
    path = tmp_path / "config.json"
    path.write_text(path.read_text().replace("{", '{"unsloth_version": "2025.1",', 1))
    card = lmcore.load(tmp_path).card
    assert card.unknown_fields == {"unsloth_version": "2025.1"}
    assert list(card.storage) == ["F32"] and card.storage["F32"].bits_per_weight == 32
