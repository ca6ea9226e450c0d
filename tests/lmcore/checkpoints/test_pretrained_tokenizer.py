"""Tokenizers of published models: ids as the libraries they come from have them, bytes and offsets of every token."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Library
from transformers import AutoTokenizer, LlamaTokenizer

from lmcore.checkpoints.gguf_tokenizer import merges_from_scores, tokenizer_from
from lmcore.checkpoints.hf_folder import _read_tokenizer
from lmcore.config import ModelConfig
from lmcore.tokenizer import PretrainedTokenizer
from lmcore.tokenizer.pretrained import beginning

WORDS = ["▁the", "▁cat", "▁ca", "the", "▁t", "he", "th", "▁c", "at", "今天", "天气", "▁▁", "▁▁▁▁"]
CHARACTERS = list(dict.fromkeys("▁thecatoks.<|>0123456789今天气\n"))


def sentence_piece(**fields):
    """Return a GGUF file's fields with a SentencePiece-style vocabulary: specials, bytes, words, characters."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *WORDS, *CHARACTERS]
    scores = [0.0] * 259 + [-float(index) for index in range(len(WORDS) + len(CHARACTERS))]
    kinds = [2, 3, 3, *[6] * 256, *[1] * (len(WORDS) + len(CHARACTERS))]
    values = {
        "model": "llama",
        "tokens": tokens,
        "scores": scores,
        "token_type": kinds,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "unknown_token_id": 0,
        "add_bos_token": True,
    }
    return {f"tokenizer.ggml.{name}": value for name, value in (values | fields).items()}


def byte_level(pre, **fields):
    """Return a GGUF file's fields with a byte-level vocabulary of one merge list."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = ["Ġ t", "Ġt he", "t he", "h e", "Ġ Ġ", "1 2", "Ġ 1", "Ġ c", "a t", "Ġc at", "Ċ Ċ", "' s"]
    tokens = ["<|end|>", *alphabet, *dict.fromkeys(merge.replace(" ", "") for merge in merges), "he"]
    tokens = list(dict.fromkeys(tokens))
    merges.insert(1, "h e")
    del merges[4]
    values = {
        "model": "gpt2",
        "pre": pre,
        "tokens": tokens,
        "token_type": [3, *[1] * (len(tokens) - 1)],
        "merges": merges,
    }
    return {f"tokenizer.ggml.{name}": value for name, value in (values | fields).items()}


TEXTS = [
    "",
    "the cat",
    " the  cat\n",
    "今天天气 ok",
    "😊👨‍👩‍👧",
    "a\0b\r\n\t",
    "12345 1 12",
    "<s>x</s>",
    "    deep",
    "龘é",
]


@pytest.mark.parametrize("text", TEXTS)
def test_sentence_piece_ids_equal_transformers(text):
    fields = sentence_piece()
    ours = tokenizer_from(fields, "x.gguf")
    tokens, scores = fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.scores"]
    theirs = LlamaTokenizer(
        vocab={token: i for i, token in enumerate(tokens)}, merges=merges_from_scores(tokens, scores), legacy=False
    )
    # SentencePiece puts a space before every text; transformers not where one is already, so none begins with one.
    # Special strings are text here, and control tokens there.
    text = text.lstrip(" ").replace("<s>", "<|").replace("</s>", "|>")
    assert ours.encode(text).ids == [1, *theirs(text, add_special_tokens=False)["input_ids"]]


def test_sentence_piece_tokens_are_bytes_and_their_offsets_touch_the_text():
    encoding = tokenizer_from(sentence_piece(), "x.gguf").encode("the 龘")
    assert encoding.tokens == [b"<s>", b" the", b" ", b"\xe9", b"\xbe", b"\x98"]
    assert encoding.offsets == [(0, 0), (0, 3), (3, 4), (4, 5), (4, 5), (4, 5)]
    assert encoding.n_added == 1
    without = tokenizer_from(sentence_piece(add_bos_token=False, add_space_prefix=False), "x.gguf").encode("the 今天")
    assert without.tokens == [b"the", b" ", "今天".encode()] and without.offsets == [(0, 3), (3, 4), (4, 6)]
    assert without.n_added == 0


def test_special_strings_are_text_unless_asked_for():
    tokenizer = tokenizer_from(sentence_piece(), "x.gguf")
    assert tokenizer.special_tokens == {"<s>": 1, "</s>": 2}
    assert 2 not in tokenizer.encode("x</s>").ids
    assert tokenizer.encode("x</s>", special_tokens=True).ids[-1] == 2
    assert tokenizer.token_bytes(2) == b"</s>"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.sampled_from(TEXTS))
def test_every_text_comes_back_byte_for_byte(text):
    for tokenizer, prefix in ((SENTENCE_PIECE, b" "), (PLAIN_SENTENCE_PIECE, b""), (BYTE_LEVEL, b"")):
        encoding = tokenizer.encode(text)
        assert b"".join(encoding.tokens[encoding.n_added :]) == (prefix if text else b"") + text.encode()
        assert tokenizer.decode_bytes(encoding.ids) == b"".join(encoding.tokens)
        for token, (start, end) in zip(encoding.tokens, encoding.offsets, strict=True):
            touched = text[start:end].encode()
            assert token in prefix + touched or token in touched or token == b"<s>"


SENTENCE_PIECE = tokenizer_from(sentence_piece(), "x.gguf")
PLAIN_SENTENCE_PIECE = tokenizer_from(sentence_piece(add_bos_token=False, add_space_prefix=False), "x.gguf")
BYTE_LEVEL = tokenizer_from(byte_level("smollm"), "x.gguf")


@pytest.mark.parametrize(
    ("pre", "text", "tokens"),
    [
        ("gpt-2", "the cat's  12", ["the", " cat", "'s", " ", " ", "12"]),
        ("smollm", "the cat's  12", ["the", " cat", "'s", "  ", "1", "2"]),  # every digit stands alone
        ("llama-bpe", "the  12\n\n", ["the", " ", " ", "12", "\n\n"]),
        ("qwen2", "the  12\n\n", ["the", " ", " ", "1", "2", "\n\n"]),
    ],
)
def test_the_text_is_split_by_the_rule_the_file_names(pre, text, tokens):
    encoding = tokenizer_from(byte_level(pre, bos_token_id=0), "x.gguf").encode(text)
    assert [token.decode() for token in encoding.tokens[encoding.n_added :]] == tokens


def test_a_replay_ends_at_the_tokens():
    for tokenizer, text in (
        (BYTE_LEVEL, "the cat's the 今"),
        (SENTENCE_PIECE, "the cat 今天天气龘"),
        (PLAIN_SENTENCE_PIECE, "  the cat 今天"),
    ):
        encoding = tokenizer.encode(text)
        steps = tokenizer.replay(text)
        assert steps[-1].pieces == encoding.tokens[encoding.n_added :]
        assert all(tokenizer.merges[step.rank] == step.pair for step in steps)


def test_a_normalizing_tokenizer_still_says_which_characters_a_token_touches():
    tokenizer = tokenizer_from(byte_level("qwen2"), "x.gguf")
    text = "e\u0301 cat"  # NFC makes one character of the first two
    encoding = tokenizer.encode(text)
    assert b"".join(encoding.tokens).decode() == "\u00e9 cat"
    assert encoding.offsets == [(0, 2), (0, 2), (2, 6)]


def test_a_table_may_have_a_few_rows_to_spare(tmp_path):
    library = Library(models.BPE(vocab={"a": 0, "b": 1}, merges=[]))
    library.pre_tokenizer, library.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    library.add_tokens([AddedToken("<end>", special=True)])
    library.save(str(tmp_path / "tokenizer.json"))
    padded = PretrainedTokenizer.from_file(tmp_path / "tokenizer.json", vocab_size=10)
    assert (padded.vocab_size, padded.token_bytes(2), padded.token_bytes(9)) == (10, b"<end>", b"")
    for size in (3 + 1025,):
        with pytest.raises(ValueError, match=f"has 3 tokens.*table has {size} rows: they do not belong together"):
            PretrainedTokenizer.from_file(tmp_path / "tokenizer.json", vocab_size=size)


def test_a_table_may_have_fewer_rows_than_there_are_tokens(tmp_path):
    library = Library(models.BPE(vocab={"a": 0, "b": 1, "c": 2}, merges=[]))
    library.pre_tokenizer, library.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    library.add_tokens([AddedToken("<image>", special=True), AddedToken("<extra>", special=False)])
    library.save(str(tmp_path / "tokenizer.json"))
    cut = PretrainedTokenizer.from_file(tmp_path / "tokenizer.json", vocab_size=3)
    assert (cut.vocab_size, cut.without_row, cut.special_tokens) == (3, {"<image>": 3, "<extra>": 4}, {})
    assert cut.encode("abc").ids == [0, 1, 2]
    with pytest.raises(ValueError, match="the text has the token '<extra>', whose id 4 has no row"):
        cut.encode("a<extra>")
    with pytest.raises(ValueError, match="the token '<image>', whose id 3 has no row in the model's table of 3"):
        cut.encode("a<image>", special_tokens=True)


FAMILIES = {
    "llama": "LlamaTokenizer",
    "gpt2": "GPT2Tokenizer",
    "qwen2": "Qwen2Tokenizer",
    "qwen3": None,
    "gemma3_text": "GemmaTokenizer",
}


@pytest.mark.parametrize("add_bos_token", [None, True, False])
@pytest.mark.parametrize("begins", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_what_a_text_begins_with_is_decided_as_transformers_decides(tmp_path, family, begins, add_bos_token):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    library = Library(models.BPE(vocab={character: i for i, character in enumerate(alphabet)}, merges=[]))
    library.pre_tokenizer, library.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    library.add_special_tokens(["<s>", "</s>", "<unk>", "<pad>", "<bos>", "<eos>", "<|endoftext|>"])
    library.post_processor = beginning(library, "<s>" if begins else "", "x")
    library.save(str(tmp_path / "tokenizer.json"))
    settings = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "tokenizer_class": FAMILIES[family]}
    settings |= {"add_bos_token": add_bos_token}
    written = {name: value for name, value in settings.items() if value is not None}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(written))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": family}))
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    config = ModelConfig(vocab_size=len(theirs), d_model=2, n_layers=1, n_heads=1, context_length=1)
    ours = _read_tokenizer(tmp_path, config)
    assert ours.encode("a<").ids == theirs("a<")["input_ids"]


def test_a_file_that_begins_with_a_token_that_is_none_is_refused():
    with pytest.raises(ValueError, match="begin with '<bos>', which is no token"):
        beginning(Library(models.BPE(vocab={"a": 0}, merges=[])), "<bos>", "x")


@pytest.mark.slow
def test_long_texts_of_one_letter_take_no_age():
    assert len(PLAIN_SENTENCE_PIECE.encode("a" * 100_000).ids) == 100_000
    assert len(BYTE_LEVEL.encode("^" * 100_000).ids) == 100_000


def test_a_lone_surrogate_is_refused_in_words():
    for tokenizer in (SENTENCE_PIECE, BYTE_LEVEL):
        for use in (tokenizer.encode, tokenizer.replay, tokenizer.first_pieces):
            with pytest.raises(ValueError, match=r"character 1 of the text is U\+D83D"):
                use("a\ud83d")


def test_parts_that_would_be_read_wrongly_are_refused(tmp_path):
    path = tmp_path / "tokenizer.json"
    good = json.loads(SENTENCE_PIECE.definition)
    library = Library(models.BPE(vocab={"a": 0}, merges=[]))
    library.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    library.save(str(path))
    with pytest.raises(ValueError, match=r"tokenizer\.json: normalizer = 'Lowercase' is not read"):
        PretrainedTokenizer.from_file(path)
    path.write_text(json.dumps(good | {"model": good["model"] | {"end_of_word_suffix": "</w>"}}))
    with pytest.raises(ValueError, match=r"model\.end_of_word_suffix = '</w>' is not read"):
        PretrainedTokenizer.from_file(path)
