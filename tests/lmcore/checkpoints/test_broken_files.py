"""Broken and hostile files: each gives one clear sentence that names file and field, soon and without running code."""

from __future__ import annotations

import json
import os
import pickle
import random
import struct

import gguf
import numpy as np
import pytest
import safetensors.torch
import torch

import lmcore
from lmcore.checkpoints.gguf_file import GGUFFile
from tests.lmcore.checkpoints.tiny import write_folder
from tests.lmcore.checkpoints.tiny_gguf import write_gguf

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def good_gguf(tmp_path_factory):
    path = tmp_path_factory.mktemp("good") / "tiny.gguf"
    write_gguf("llama", path)
    return path.read_bytes()


@pytest.fixture
def folder(tmp_path):
    write_folder("llama", tmp_path)
    return tmp_path


def refusal(path):
    """Return what loading a file is refused with: one sentence, whatever is wrong."""
    with pytest.raises(ValueError) as caught:
        lmcore.load(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# ---- GGUF ----


def test_a_gguf_file_cut_anywhere_is_said_to_be_cut(good_gguf, tmp_path):
    path = tmp_path / "cut.gguf"
    for length in [0, 3, 4, 8, 12, 20, 24, *range(30, 12_000, 487), len(good_gguf) // 2, len(good_gguf) - 1]:
        path.write_bytes(good_gguf[:length])
        assert "cut.gguf" in refusal(path), length
    assert "is cut short: tensor" in refusal(path)


@pytest.mark.parametrize(
    ("offset", "form", "value", "words"),
    [
        (0, "4s", b"GGML", "does not begin with 'GGUF'"),
        (4, "<I", 1, "version 0x1: only 2 and 3"),
        (4, "<I", 3 << 24, "big-endian"),
        (8, "<Q", 1 << 60, "the number of tensors is 1,152,921,504,606,846,976, more than the file"),
        (16, "<Q", 1 << 60, "the number of fields is 1,152,921,504,606,846,976"),
        (24, "<Q", 1 << 62, "at the name of field 0"),
    ],
)
def test_an_absurd_length_is_not_believed(good_gguf, tmp_path, offset, form, value, words):
    data = bytearray(good_gguf)
    struct.pack_into(form, data, offset, value)
    (tmp_path / "bad.gguf").write_bytes(data)
    assert words in refusal(tmp_path / "bad.gguf")


def test_an_absurd_array_is_not_believed(good_gguf, tmp_path):
    data = bytearray(good_gguf)
    at = data.index(b"tokenizer.ggml.token_type") + len(b"tokenizer.ggml.token_type") + 8
    struct.pack_into("<Q", data, at, 1 << 40)
    (tmp_path / "bad.gguf").write_bytes(data)
    assert "the length of tokenizer.ggml.token_type is 1,099,511,627,776" in refusal(tmp_path / "bad.gguf")


def test_flipped_bytes_are_refused_in_words_or_do_no_harm(good_gguf, tmp_path):
    path, draw = tmp_path / "flipped.gguf", random.Random(6)
    header = good_gguf.index(b"blk.2.ffn_up.weight")
    refused = 0
    for _ in range(150):
        data = bytearray(good_gguf)
        data[draw.randrange(header)] ^= 1 << draw.randrange(8)
        path.write_bytes(data)
        try:
            lmcore.load(path)
        except ValueError as error:
            assert "flipped.gguf" in str(error)
            refused += 1
    assert refused > 30


def rewritten(good_gguf, tmp_path, change):
    """Write a GGUF file whose fields and tensors `change` has had its hands on."""
    (tmp_path / "good.gguf").write_bytes(good_gguf)
    file = GGUFFile([tmp_path / "good.gguf"])
    fields = dict(file.metadata)
    tensors = {name: file.read(name, torch.float32).numpy() for name in file.shapes()}
    change(fields, tensors)
    writer = gguf.GGUFWriter(tmp_path / "changed.gguf", fields.pop("general.architecture"))
    for name, value in fields.items():
        add = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
        add.get(type(value), writer.add_array)(name, value)
    for name, tensor in tensors.items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return tmp_path / "changed.gguf"


GGUF_CHANGES = {
    "a field that changes the numbers": (
        lambda f, t: f.update({"llama.attention.clamp_kqv": 8.0}),
        "llama.attention.clamp_kqv = 8.0 would change the numbers",
    ),
    "two scalings at once": (
        lambda f, t: (
            f.update({"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}),
            t.update({"rope_freqs.weight": np.ones(6, np.float32)}),
        ),
        "rope.scaling.type = 'linear' beside rope_freqs.weight is not supported",
    ),
    "a head of any size": (
        lambda f, t: (
            f.update({"llama.rope.dimension_count": 2**31}),
            t.update({"rope_freqs.weight": np.ones(6, np.float32)}),
        ),
        "rope_freqs.weight has the shape [6]; RoPE turns 1073741824 pairs",
    ),
    "another architecture": (
        lambda f, t: f.update({"general.architecture": "mamba"}),
        "general.architecture = 'mamba'",
    ),
    "experts": (lambda f, t: f.update({"llama.expert_count": 8}), "expert_used_count is missing"),
    "another scaling": (lambda f, t: f.update({"llama.rope.scaling.type": "su"}), "rope.scaling.type = 'su'"),
    "half a head rotated": (lambda f, t: f.update({"llama.rope.dimension_count": 6}), "rope.dimension_count = 6"),
    "no layers given": (lambda f, t: f.pop("llama.block_count"), "llama.block_count is missing"),
    "a billion layers": (
        lambda f, t: f.update({"llama.block_count": 10**9}),
        "block_count = 1,000,000,000 is more than the 10,000 that are read",
    ),
    "a thousand layers": (lambda f, t: f.update({"llama.block_count": 1000}), "too few for the 1000 layers"),
    "a huge model": (lambda f, t: f.update({"llama.embedding_length": 2**31}), "has shape [282, 48]"),
    "a huge mlp": (lambda f, t: f.update({"llama.feed_forward_length": 2**32 - 1}), "changed.gguf"),
    "huge heads": (
        lambda f, t: f.update(
            {
                f"llama.{name}": 2**30
                for name in ("attention.key_length", "attention.value_length", "rope.dimension_count")
            }
        ),
        "d_head = 1073741824",
    ),
    "a huge context": (lambda f, t: f.update({"llama.context_length": 2**31}), "context_length = 2,147,483,648"),
    "another number of heads": (
        lambda f, t: f.update({"llama.attention.head_count": 8}),
        "'blocks.0.attn.q.weight' has shape [48, 48]",
    ),
    "a layer more": (lambda f, t: f.update({"llama.block_count": 4}), "tensor 'blocks.3.attn_norm.weight' is missing"),
    "a layer fewer": (lambda f, t: f.update({"llama.block_count": 2}), "tensor 'blk.2."),
    "a tensor missing": (lambda f, t: t.pop("blk.1.ffn_up.weight"), "'blocks.1.mlp.up.weight' is missing"),
    "a tensor too many": (
        lambda f, t: t.update({"blk.1.ssm.weight": np.ones(3, np.float32)}),
        "'blk.1.ssm.weight' is not part",
    ),
    "a NaN": (lambda f, t: t["blk.1.attn_v.weight"].__setitem__((3, 4), np.nan), "'blocks.1.attn.v.weight' holds NaN"),
    "an infinity": (
        lambda f, t: t["output_norm.weight"].__setitem__(3, -np.inf),
        "'final_norm.weight' holds NaN or infinite",
    ),
    "a token fewer": (lambda f, t: f["tokenizer.ggml.tokens"].pop(), "Token `Ġweather` out of vocabulary"),
    "another vocabulary": (
        lambda f, t: (f["tokenizer.ggml.tokens"].append("x1"), f["tokenizer.ggml.token_type"].append(1)),
        "has shape [282, 48], the config asks for [283, 48]",
    ),
    "a token twice": (
        lambda f, t: f["tokenizer.ggml.tokens"].__setitem__(7, f["tokenizer.ggml.tokens"][8]),
        "tokenizer.ggml.tokens lists a token twice",
    ),
    "an unknown splitting": (
        lambda f, t: f.update({"tokenizer.ggml.pre": "my-own-rule"}),
        "tokenizer.ggml.pre = 'my-own-rule' is not known",
    ),
    "an unknown tokenizer": (lambda f, t: f.update({"tokenizer.ggml.model": "bert"}), "tokenizer.ggml.model = 'bert'"),
    "a merge of nothing": (
        lambda f, t: f["tokenizer.ggml.merges"].append("lonely"),
        "tokenizer.ggml.merges has 'lonely'",
    ),
    "merges of unknown tokens": (lambda f, t: f["tokenizer.ggml.merges"].append("qqq zzz"), "tokenizers library"),
    "a first token that is none": (
        lambda f, t: f.update({"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.bos_token_id": 999}),
        "tokenizer.ggml.bos_token_id is 999",
    ),
}


@pytest.mark.parametrize("change", GGUF_CHANGES)
def test_a_gguf_file_at_odds_with_itself(good_gguf, tmp_path, change):
    how, words = GGUF_CHANGES[change]
    said = refusal(rewritten(good_gguf, tmp_path, how))
    assert words in said and "changed.gguf" in said


# ---- folders ----


def test_a_pickle_is_never_opened(folder):
    (folder / "model.safetensors").unlink()

    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(folder / "ran"),)

    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Trap()))
    assert "pytorch_model.bin; a pickle can run any code and is never opened" in refusal(folder)
    (folder / "model.safetensors").write_bytes(pickle.dumps(Trap()))
    assert "model.safetensors cannot be read as safetensors" in refusal(folder)
    (folder / "model.gguf").write_bytes(pickle.dumps(Trap()))
    assert "model.gguf is not a GGUF file" in refusal(folder / "model.gguf")
    assert not (folder / "ran").exists()


def test_a_safetensors_file_that_is_cut_or_lies_about_its_header(folder):
    path = folder / "model.safetensors"
    data = path.read_bytes()
    for length in (0, 5, 8, 100, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:length])
        assert "model.safetensors cannot be read as safetensors" in refusal(folder)
    path.write_bytes(struct.pack("<Q", 1 << 62) + data[8:])
    assert "model.safetensors cannot be read as safetensors" in refusal(folder)


def changed_tensors(folder, change):
    tensors = safetensors.torch.load_file(folder / "model.safetensors")
    change(tensors)
    safetensors.torch.save_file(tensors, folder / "model.safetensors")


TENSOR_CHANGES = {
    "missing": (lambda t: t.pop("model.layers.1.mlp.up_proj.weight"), "'blocks.1.mlp.up.weight' is missing"),
    "one too many": (
        lambda t: t.update({"model.layers.1.extra.weight": torch.ones(3)}),
        "'model.layers.1.extra.weight' is not part",
    ),
    "another shape": (
        lambda t: t.update({"model.norm.weight": torch.ones(3)}),
        "'final_norm.weight' has shape [3], the config asks for [48]",
    ),
    "NaN": (lambda t: t["lm_head.weight"][3].fill_(torch.nan), "'head.weight' holds NaN"),
    "whole numbers": (
        lambda t: t.update({"model.norm.weight": torch.ones(48, dtype=torch.int64)}),
        "'model.norm.weight' is stored as I64",
    ),
    "no axes": (lambda t: t.update({"model.norm.weight": torch.tensor(1.0)}), "'final_norm.weight' has shape []"),
}


@pytest.mark.parametrize("change", TENSOR_CHANGES)
def test_tensors_at_odds_with_the_config(folder, change):
    how, words = TENSOR_CHANGES[change]
    changed_tensors(folder, how)
    said = refusal(folder)
    assert words in said and "model.safetensors" in said


CONFIG_CHANGES = {
    "a field not understood": ({"attention_sinks": 4}, "attention_sinks = 4 would change the numbers"),
    "quantised weights": (
        {"quantization_config": {"quant_method": "gptq"}},
        "quantization_config = {'quant_method': 'gptq'} would change the numbers",
    ),
    "another family": ({"model_type": "mamba"}, "model_type = 'mamba' is not supported"),
    "another activation": ({"hidden_act": "mish"}, "hidden_act = 'mish' is not supported"),
    "another scaling": ({"rope_parameters": {"rope_type": "su", "factor": 4.0}}, "rope_type = 'su'"),
    "a base that never turns": (
        {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1.0, "factor": 4.0}},
        "the numbers of its config cannot be computed with",
    ),
    "a scaling's field": (
        {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "beta_fast": 32}},
        "beta_fast = 32 would change the numbers",
    ),
    "a size of another kind": ({"hidden_size": "48"}, "hidden_size must be a whole number of at least 1, got '48'"),
    "a size missing": ({"intermediate_size": None}, "intermediate_size is missing"),
    "a list for a table": ({"rope_parameters": [1]}, "rope_parameters must be a table"),
    "more layers": ({"num_hidden_layers": 4}, "'blocks.3.attn_norm.weight' is missing"),
    "other heads": (
        {"num_attention_heads": 6, "head_dim": 8, "num_key_value_heads": 6},
        "'blocks.0.attn.k.weight' has shape [24, 48]",
    ),
    "a vocabulary smaller than the table": ({"vocab_size": 200}, "has shape [282, 48], the config asks for [200, 48]"),
    "a vocabulary far larger": ({"vocab_size": 5000}, "tokenizer.json has 282 tokens"),
}


@pytest.mark.parametrize("change", CONFIG_CHANGES)
def test_a_config_that_is_not_understood_or_at_odds_with_the_tensors(folder, change):
    values, words = CONFIG_CHANGES[change]
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    assert words in refusal(folder)


def test_files_that_are_missing_or_no_json(folder):
    (folder / "config.json").write_text("{")
    assert "config.json cannot be read as JSON" in refusal(folder)
    (folder / "config.json").write_text("[" * 100_000)
    assert "config.json cannot be read as JSON" in refusal(folder)
    (folder / "config.json").write_text("[]")
    assert "config.json must be a table" in refusal(folder)
    (folder / "config.json").unlink()
    assert "config.json is missing" in refusal(folder)
    with pytest.raises(ValueError, match=r"no model is called 'no/such/thing'.*small-world"):
        lmcore.load("no/such/thing")


def test_a_tokenizer_that_is_not_read(folder):
    path = folder / "tokenizer.json"
    good = json.loads(path.read_text())
    for change, words in (
        ({"normalizer": {"type": "Lowercase"}}, "normalizer = 'Lowercase' is not read"),
        ({"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}}, "model.type = 'WordLevel' is not read"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "pre_tokenizer = 'Whitespace' is not read"),
        ({"model": {}}, "tokenizer.json is not read by the tokenizers library"),
    ):
        path.write_text(json.dumps(good | change))
        assert words in refusal(folder)
    path.unlink()
    assert "tokenizer.json is missing" in refusal(folder)


def test_an_index_may_only_name_files_of_its_folder(folder):
    (folder / "model.safetensors").rename(folder.parent / "outside.safetensors")
    index = folder / "model.safetensors.index.json"
    for shard in ("../outside.safetensors", "/etc/passwd", 7, "a/b.safetensors"):
        index.write_text(json.dumps({"weight_map": {"model.norm.weight": shard}}))
        assert "which is no file of this folder" in refusal(folder)
    index.write_text(json.dumps({"weight_map": {"model.norm.weight": "model-1-of-2.safetensors"}}))
    assert "model-1-of-2.safetensors is missing" in refusal(folder)
    index.write_text(json.dumps({"weight_map": []}))
    assert "weight_map must be a table" in refusal(folder)


def test_a_hub_model_that_cannot_be_had_is_said_so(monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    assert refusal("someone/some-model").startswith("someone/some-model could not be downloaded:")
