"""A conversation's ids are those of transformers, and templates come from folders and GGUF files as there."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmcore import chat
from lmcore.checkpoints.chat_templates import template_from_folder, template_from_gguf
from tests.lmcore.chat.small import SPECIAL, TURNS, chat_model, reference, system, user

PIECES = st.sampled_from(["the", " the cat", " ", "\n", "天", "<|im_end|>", "<s>", "<", "|im_end|>", "a"])
CONTENT = st.lists(PIECES, max_size=6).map("".join)


@pytest.mark.slow
@settings(max_examples=40)
@given(CONTENT, CONTENT, st.booleans())
def test_ids_are_transformers_whether_a_users_control_strings_are_tokens_or_text(first, second, as_text):
    lm, messages = chat_model(TURNS, first="<s>"), [system(first), user(second)]
    expected = reference().apply_chat_template(
        messages,
        chat_template=TURNS,
        add_generation_prompt=True,
        return_dict=False,
        sanitize_control_tokens=as_text,
    )
    found = chat.encode(lm, messages, user_text_stays_text=as_text)
    assert found.ids == expected
    assert b"".join(found.tokens).decode() == found.text
    assert all(found.text[start:end] for start, end in found.offsets)


def test_a_model_without_a_template_says_so_and_takes_another():
    lm = chat_model(None)
    with pytest.raises(ValueError, match="small has no chat template"):
        chat.encode(lm, [user("a")])
    assert chat.encode(lm, [user("a")], template=TURNS).ids == chat.encode(chat_model(TURNS), [user("a")]).ids


def test_templates_of_a_folder_are_those_that_transformers_finds(tmp_path):
    tokenizer = reference()
    tokenizer.chat_template = {"default": "one", "tool_use": "two"}
    tokenizer.save_pretrained(tmp_path)
    found = template_from_folder(tmp_path, dict.fromkeys(SPECIAL, 0))
    assert (found.source, found.named) == ("one", {"tool_use": "two"})
    assert found.variables["bos_token"] == "<s>" and found.control == SPECIAL
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    for path in (tmp_path / "chat_template.jinja", *(tmp_path / "additional_chat_templates").glob("*")):
        path.unlink()
    assert template_from_folder(tmp_path, {}) is None
    entries = [{"name": "default", "template": "three"}, {"name": "rag", "template": "four"}]
    for given_, source, named in (("single", "single", {}), (entries, "three", {"rag": "four"})):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config | {"chat_template": given_}))
        found = template_from_folder(tmp_path, {})
        assert (found.source, found.named) == (source, named)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config | {"chat_template": ["x", 1]}))
    assert template_from_folder(tmp_path, {}) is None
    (tmp_path / "chat_template.json").write_text('{"chat_template": "five"}')
    (tmp_path / "tokenizer_config.json").unlink()
    found = template_from_folder(tmp_path, {})
    assert (found.source, found.filename) == ("five", "chat_template.json")
    with open(tmp_path / "tokenizer_config.json", "wb") as file:
        file.truncate((1 << 24) + 1)
    with pytest.raises(ValueError, match=r"tokenizer_config.json has 16,777,217 bytes; at most"):
        template_from_folder(tmp_path, {})
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(ValueError, match=r"tokenizer_config.json cannot be read as JSON"):
        template_from_folder(tmp_path, {})


def test_templates_of_a_gguf_file():
    fields = {
        "tokenizer.chat_template": "one",
        "tokenizer.chat_template.tool_use": "two",
        "tokenizer.ggml.tokens": ["<s>", "</s>"],
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.eos_token_id": 7,
    }
    found = template_from_gguf(fields, {"<s>": 0}, "a.gguf")
    assert (found.source, found.named, found.variables) == ("one", {"tool_use": "two"}, {"bos_token": "<s>"})
    assert template_from_gguf({}, {}) is None
