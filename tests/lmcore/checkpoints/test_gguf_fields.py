"""What a GGUF file leaves out or says in an older way means what llama.cpp makes of it."""

from __future__ import annotations

import json
import subprocess

import gguf
import pytest

import lmcore
from lmcore.checkpoints.gguf_file import GGUFFile
from lmcore.checkpoints.gguf_splitting import SPLITTINGS
from lmcore.checkpoints.gguf_tokenizer import tokenizer_from
from lmcore.checkpoints.packaged import PACKAGED
from lmcore.config import RopeScaling
from tests.engines import llama_cpp
from tests.engines.servers import python_of
from tests.lmcore.checkpoints.test_broken_files import rewritten
from tests.lmcore.checkpoints.test_pretrained_tokenizer import byte_level, sentence_piece
from tests.lmcore.checkpoints.tiny_gguf import write_gguf
from tests.lmcore.test_real_models import TEXTS


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def good_gguf(tmp_path_factory):
    path = tmp_path_factory.mktemp("good") / "tiny.gguf"
    write_gguf("llama", path)
    return path.read_bytes()


# ---- numbers ----


@pytest.mark.parametrize(
    ("fields", "scaling"),
    [
        ({"llama.rope.scaling.factor": 4.0}, RopeScaling(kind="linear", factor=4.0)),  # the type left out
        ({"llama.rope.scale_linear": 4.0}, RopeScaling(kind="linear", factor=4.0)),  # the oldest files
        ({"llama.rope.scaling.type": "none", "llama.rope.scaling.factor": 4.0}, None),
        ({"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 0.0}, None),
    ],
)
def test_a_scaling_in_other_words(good_gguf, tmp_path, fields, scaling):
    assert lmcore.load(rewritten(good_gguf, tmp_path, lambda f, t: f.update(fields))).config.rope_scaling == scaling


def test_a_field_that_the_format_does_not_know_is_let_through(good_gguf, tmp_path):
    fields = {"llama.my_tool.version": 3, "llama.logit_scale": 1.0, "llama.expert_count": 0, "general.my_note": "x"}
    changed = lmcore.load(rewritten(good_gguf, tmp_path, lambda f, t: f.update(fields)))
    assert changed([1, 2, 3]).equal(lmcore.load(tmp_path / "good.gguf")([1, 2, 3]))


def test_granite_says_by_another_field_that_it_has_no_rope(tmp_path):
    write_gguf("granite 4", tmp_path / "granite.gguf")
    bytes_ = (tmp_path / "granite.gguf").read_bytes()
    without = rewritten(bytes_, tmp_path, lambda f, t: f.update({"granite.rope.scaling.finetuned": False}))
    assert lmcore.load(tmp_path / "granite.gguf").config.unrotated_layers == ()
    assert lmcore.load(without).config.unrotated_layers == (0, 1)


# ---- ids ----


@pytest.mark.parametrize(
    ("pre", "said", "begins"),
    [
        *(("llama-bpe", None, True), ("llama-bpe", False, False), ("tekken", None, True), ("falcon3", None, True)),
        *(("qwen2", None, False), ("gpt-2", None, False), ("gpt-2", True, True), ("smaug-bpe", None, False)),
    ],
)
def test_whether_a_text_begins_with_the_first_token_follows_from_the_rules_name(pre, said, begins):
    fields = byte_level(pre, bos_token_id=0) | ({} if said is None else {"tokenizer.ggml.add_bos_token": said})
    assert tokenizer_from(fields, "x.gguf").encode("the").n_added == begins


def test_sentence_piece_texts_begin_with_it_where_the_file_does_not_say():
    fields = sentence_piece()
    del fields["tokenizer.ggml.add_bos_token"]
    assert tokenizer_from(fields, "x.gguf").encode("the").ids[0] == 1


TEXT = "123456 it's DON'T FooBar x_y//\n\n  好的3 abc"
CUTS = {
    None: "123|456| it|'|s| DON|'|T| FooBar| x|_|y|//|\n\n | 好的|3| abc",
    "default": "123|456| it|'|s| DON|'|T| FooBar| x|_|y|//|\n\n | 好的|3| abc",
    "gpt-2": "123456| it|'s| DON|'|T| FooBar| x|_|y|//|\n\n | 好的|3| abc",
    "smollm": "1|2|3|4|5|6| it|'s| DON|'|T| FooBar| x|_|y|//|\n\n | 好的|3| abc",
    "llama-bpe": "123|456| it|'s| DON|'T| FooBar| x|_y|//\n\n| | 好的|3| abc",
    "qwen2": "1|2|3|4|5|6| it|'s| DON|'T| FooBar| x|_y|//\n\n| | 好的|3| abc",
    "tekken": "1|2|3|4|5|6| it|'s| DON|'T| Foo|Bar| x|_y|//\n\n| | 好的|3| abc",
    "gpt-4o": "123|456| it's| DON'T| Foo|Bar| x|_y|//\n\n| | 好的|3| abc",
    "deepseek-v3": "123|456| it|'s| DON|'T| FooBar| x|_y|//\n\n|  |好的|3| abc",
}


@pytest.mark.parametrize("pre", CUTS)
def test_a_text_is_cut_by_the_rule(pre):
    fields = byte_level(pre, bos_token_id=0)
    if pre is None:
        del fields["tokenizer.ggml.pre"]
    library = tokenizer_from(fields | {"general.architecture": "llama"}, "x.gguf")._as_text
    cuts = [TEXT[start:end] for _, (start, end) in library.pre_tokenizer.pre_tokenize_str(TEXT)]
    assert "|".join(cuts) == CUTS[pre]


def test_gpt2s_old_files_mean_gpt2s_rule():
    fields = byte_level("gpt-2") | {"general.architecture": "gpt2"}
    del fields["tokenizer.ggml.pre"]
    assert [token.decode() for token in tokenizer_from(fields, "x.gguf").encode("the  12").tokens] == [
        *("the", " ", " ", "12")
    ]


THEIR_IDS = """
import json, sys, llama_cpp
texts, files = json.load(sys.stdin)
for file in files:
    model = llama_cpp.Llama(file, vocab_only=True, verbose=False)
    print(json.dumps([model.tokenize(text.encode(), add_bos=True, special=False) for text in texts]))
"""


@pytest.mark.slow
def test_ids_equal_llama_cpps_under_every_rule(tmp_path):
    """The same tokens and merges under each name; qwen2's differ where it normalises and llama.cpp does not."""
    if not (llama_cpp.installed() and PACKAGED["smollm2-135m-instruct"].installed):
        pytest.skip("needs SmolLM2 and `python -m tests.engines.llama_cpp install`")
    smollm = GGUFFile(PACKAGED["smollm2-135m-instruct"].paths).metadata
    files = {}
    for pre in (None, *SPLITTINGS):
        files[pre] = tmp_path / f"{pre}.gguf"
        writer = gguf.GGUFWriter(files[pre], "llama")
        writer.add_vocab_size(len(smollm["tokenizer.ggml.tokens"]))
        writer.add_tokenizer_model("gpt2")
        if pre:
            writer.add_tokenizer_pre(pre)
        writer.add_token_list(smollm["tokenizer.ggml.tokens"])
        writer.add_token_types(smollm["tokenizer.ggml.token_type"])
        writer.add_token_merges(smollm["tokenizer.ggml.merges"])
        writer.add_bos_token_id(1)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()
    texts = [*TEXTS, TEXT, "  x  ", "हिन्दी नमस्ते", "+++ <=> $5 ^_^"]
    texts = [text for text in texts if not {"\0", "\u0301"} & set(text)]
    asked = json.dumps([texts, [str(file) for file in files.values()]])
    command = [str(python_of(llama_cpp.NAME)), "-c", THEIR_IDS]
    told = subprocess.run(command, input=asked, capture_output=True, text=True, check=True).stdout
    for (pre, file), line in zip(files.items(), told.splitlines(), strict=True):
        ours = tokenizer_from(GGUFFile([file]).metadata, file.name)
        assert [ours.encode(text).ids for text in texts] == json.loads(line), pre
