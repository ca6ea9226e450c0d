"""What ends a generation is what transformers reads from a folder, and what the fields of a GGUF file name."""

from __future__ import annotations

import json

import pytest
from transformers import GenerationConfig, LlamaForCausalLM

import lmcore
from lmcore.checkpoints.end_tokens import from_gguf
from tests.lmcore.checkpoints.test_pretrained_tokenizer import byte_level
from tests.lmcore.checkpoints.tiny import write_folder
from tests.lmcore.checkpoints.tiny_gguf import write_gguf


@pytest.mark.parametrize(("generation", "config"), [([7, 3], 5), (4, 5), (None, 5), (None, [6, 2])])
def test_a_folders_end_tokens_are_those_transformers_stops_at(tmp_path, generation, config):
    write_folder("llama", tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"eos_token_id": config}))
    (tmp_path / "generation_config.json").unlink()
    if generation is not None:
        GenerationConfig(eos_token_id=generation).save_pretrained(tmp_path)
    theirs = LlamaForCausalLM.from_pretrained(tmp_path).generation_config.eos_token_id
    assert lmcore.load(tmp_path).end_tokens == tuple(theirs if isinstance(theirs, list) else [theirs])


def test_without_a_word_from_the_files_every_control_token_ends(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write_gguf("llama", tmp_path / "tiny.gguf")
    lm = lmcore.load(tmp_path / "tiny.gguf")
    assert lm.end_tokens == tuple(lm.tokenizer.special_tokens.values())
    assert lmcore.load().end_tokens == tuple(lmcore.load().tokenizer.special_tokens.values())


def test_the_middle_of_a_text_is_no_end():
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|fim_prefix|>", "<|file_sep|>"]
    fields = byte_level("qwen2", eos_token_id=2, eot_token_id=4)
    special = {token: index for index, token in enumerate(tokens)}
    assert from_gguf(fields, special) == (2, 4, 0)
    assert from_gguf(fields | {"tokenizer.ggml.eos_token_id": 10**6}, special) == (4, 0, 2)
