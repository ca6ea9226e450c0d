"""A real file of Qwen 2.5 gives transformers' ids and logits. Without it, `python -m tests.qwen`, this is skipped."""

from __future__ import annotations

import pytest
import torch
import transformers

import lmcore
from lmcore import chat
from tests import qwen

pytestmark = pytest.mark.skipif(not qwen.is_there(), reason="python -m tests.qwen fetches the file, 491 MB")

ODD = [
    "",
    " ",
    "\n\n \t",
    "Hello  world!!",
    "法国的首都是哪里？",
    "a😊b 👩‍👩‍👧 龘 é",
    "x<|im_end|>y<|endoftext|>",
    "def f(x):\n\treturn x**2  # 123456",
    "nul\0 and \r\n ends",
    "ＡＢＣ ﬁ ½ ¹²³ १२३",
    "I'll don't we've IT'S",
]


@pytest.fixture(scope="module")
def lm():
    return lmcore.load(qwen.FILE)


@pytest.fixture(scope="module")
def reference():
    return transformers.AutoTokenizer.from_pretrained(qwen.FILE.parent, gguf_file=qwen.FILE.name)


def test_ids_of_odd_strings(lm, reference):
    for text in ODD:
        for special in (False, True):
            theirs = reference(text, add_special_tokens=False, split_special_tokens=not special).input_ids
            assert lm.tokenizer.encode(text, special_tokens=special, add_first=False).ids == theirs, (text, special)
        assert lm.tokenizer.decode(lm.tokenizer.encode(text).ids) == text


def test_a_conversations_ids(lm, reference):
    messages = [{"role": "user", "content": "法国的首都是哪里？"}]
    theirs = reference.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    assert chat.encode(lm, messages).ids == theirs
    assert chat.end_of_turn(lm) in lm.end_tokens and not chat.check(lm, messages)


@torch.inference_mode()
def test_logits(lm):
    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        qwen.FILE.parent, gguf_file=qwen.FILE.name, dtype=torch.float32
    )
    ids = lm.tokenizer.encode("def add(a, b):\n    return 法国").ids
    torch.testing.assert_close(lm(ids), theirs(torch.tensor([ids])).logits[0], rtol=0, atol=2e-3)
