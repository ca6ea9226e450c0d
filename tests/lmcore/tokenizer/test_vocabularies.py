"""Vocabularies side by side: cuts in arrays, what they break, how they line up, and files that lose text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import regex
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import models, normalizers, pre_tokenizers

import lmcore
from lmcore.loading.vocabulary_files import SCORED, available_vocabularies, load_tokenizer, load_vocabulary
from lmcore.tokenizer.alignment import align
from lmcore.tokenizer.bpe_training import split_words
from lmcore.tokenizer.cuts import Landmarks, byte_of_character, measure, word_ranges
from lmcore.tokenizer.vocabularies import Bytes, Characters, OfLibrary, OfTokenizer, Vocabulary
from tests.lmcore.checkpoints.test_pretrained_tokenizer import BYTE_LEVEL, PLAIN_SENTENCE_PIECE, SENTENCE_PIECE

BUILTIN = OfTokenizer(lmcore.builtin.tokenizer())
EXACT: list[Vocabulary] = [BUILTIN, Characters(), Bytes(), OfTokenizer(BYTE_LEVEL), OfTokenizer(PLAIN_SENTENCE_PIECE)]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.lists(
    st.sampled_from(["今天", " the", " weather", "the cat", "华法林", "😊", "é", "e\u0301", "\n", "<|endoftext|>", "▁"])
).map("".join)


def lower_cased() -> OfLibrary:
    """Return a vocabulary of words in small letters without accents, and nothing else."""
    library = tokenizers.Tokenizer(models.WordPiece({"[UNK]": 0, "cafe": 1, "the": 2, "##s": 3}, unk_token="[UNK]"))
    library.normalizer = normalizers.BertNormalizer()
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return OfLibrary(library)


@given(TEXTS)
def test_cuts_are_the_encodings_tokens(text: str) -> None:
    for vocabulary in [BUILTIN, OfTokenizer(BYTE_LEVEL), OfTokenizer(SENTENCE_PIECE)]:
        cuts, found = vocabulary.cut(text), vocabulary.tokenizer.encode(text)
        assert cuts.ids.tolist() == found.ids and cuts.n_added == found.n_added
        places = byte_of_character(text)
        for start, end, (first, last) in zip(cuts.starts, cuts.ends, found.offsets, strict=True):
            assert places[first] <= start <= end <= places[last]


def test_half_of_a_surrogate_pair_and_what_is_no_text_are_refused_in_words() -> None:
    library = tokenizers.Tokenizer(models.Unigram([("<unk>", -9.0), ("a", -1.0)], unk_id=0))
    cuts = [vocabulary.cut for vocabulary in [*EXACT, lower_cased(), OfLibrary(library)]]
    others = [split_words, Landmarks.of, lower_cased().read, lambda text: OfLibrary(library).segment(text, 2)]
    for use in [*cuts, *others, lambda text: lmcore.Tokenizer.train([text], 300)]:
        with pytest.raises(ValueError, match=r"character 2 of the text is U\+D800, half of a surrogate pair"):
            use("ab\ud800c")
        with pytest.raises(TypeError, match="a text is a str, but this is bytes"):
            use(b"ab")  # type: ignore[arg-type]


@given(TEXTS)
def test_exact_vocabularies_cover_the_text_and_give_it_back(text: str) -> None:
    data = text.encode()
    for vocabulary in EXACT:
        cuts = vocabulary.cut(text)
        if cuts.decoded == text:  # a ▁ of the text is a space to SentencePiece
            assert cuts.ends.tolist() == [*cuts.starts.tolist()[1:], len(data)][: len(cuts)]
            tokens = [vocabulary.token_bytes(token_id) for token_id in cuts.ids.tolist()]
            assert tokens == [data[start:end] for start, end in zip(cuts.starts, cuts.ends, strict=True)]
            assert vocabulary.read(text) == text
        else:
            assert vocabulary is EXACT[-1] and "▁" in text
            assert vocabulary.read(text) == cuts.decoded == text.replace("▁", " ")


@given(TEXTS)
def test_measures_are_those_counted_one_by_one(text: str) -> None:
    marks = Landmarks.of(text)
    assert marks.places.tolist() == [len(text[:index].encode()) for index in range(len(text) + 1)]
    for vocabulary in EXACT[:4]:
        cuts = vocabulary.cut(text)
        found = measure(marks, cuts)
        inside = set(cuts.starts.tolist())

        def cut(first: int, last: int, inside: set[int] = inside) -> bool:
            low, high = len(text[:first].encode()), len(text[:last].encode())
            return any(low < start < high for start in inside)

        assert found.split_characters == sum(cut(index, index + 1) for index in range(len(text)))
        assert found.broken_words.tolist() == [[a, b] for a, b in word_ranges(text).tolist() if cut(a, b)]
        assert (found.tokens, found.characters, found.n_bytes) == (len(cuts), len(text), len(text.encode()))


@given(TEXTS)
def test_words_are_letters_and_digits_of_scripts_that_have_spaces(text: str) -> None:
    covered = {index for start, end in word_ranges(text).tolist() for index in range(start, end)}
    spaceless = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}]"
    for index, character in enumerate(text):
        if regex.fullmatch(r"[\p{Latin}\p{Cyrillic}\p{Greek}\p{Arabic}0-9]", character) and character.isalnum():
            assert index in covered
        if regex.fullmatch(spaceless, character) and character < "\u3100":
            assert index not in covered
    example = "Die Größe, l'été 3a 天气 _x"
    assert [example[a:b] for a, b in word_ranges(example).tolist()] == ["Die", "Größe", "l", "été", "3a", "x"]


@given(TEXTS, st.integers(0, 60), st.integers(0, 60))
def test_lined_up_tokens_stand_for_the_same_bytes(text: str, start: int, length: int) -> None:
    data = text.encode()
    start = min(start, len(data))
    end = min(start + length, len(data))
    vocabularies: list[Vocabulary] = [*EXACT[:4], lower_cased()]
    cuts = [vocabulary.cut(text) for vocabulary in vocabularies]
    segments = align(cuts, start, end)
    assert [segment.end for segment in segments[:-1]] == [segment.start for segment in segments[1:]]
    assert not data[start:end] or (segments[0].start, segments[-1].end) == (start, end)
    for which, each in enumerate(cuts):
        drawn = []
        for segment in segments:
            row = segment.rows[which]
            assert [cell.last for cell in row] == [*(cell.first for cell in row[1:]), segment.columns]
            drawn += [index for cell in row for index in cell.tokens]
        expected = [i for i in range(len(each)) if each.starts[i] < end and each.ends[i] > start and start < end]
        assert drawn == [i for i in expected if each.starts[i] < each.ends[i]]


def test_a_common_cut_is_one_of_all() -> None:
    the_cat = "the cat"
    cuts = [Bytes().cut(the_cat), OfTokenizer(BYTE_LEVEL).cut(the_cat)]
    segments = align(cuts, 0, 7)
    assert [(segment.start, segment.end, segment.columns) for segment in segments] == [(0, 3, 3), (3, 7, 4)]
    assert [len(row) for row in segments[0].rows] == [3, 1]


def test_a_file_that_loses_text_says_what_is_left() -> None:
    vocabulary = lower_cased()
    text = "Cafés THE 天"
    cuts = vocabulary.cut(text)
    assert [vocabulary.token_bytes(token_id) for token_id in cuts.ids.tolist()] == [b"cafe", b"##s", b"the", b"[UNK]"]
    data = text.encode()
    assert [data[a:b].decode() for a, b in zip(cuts.starts, cuts.ends, strict=True)] == ["Café", "s", "THE", "天"]
    assert vocabulary.read(text) == "cafes the  天 "
    assert cuts.decoded == "cafe ##s the [UNK]"


def test_a_changed_text_still_has_its_tokens_where_they_were() -> None:
    cuts = OfTokenizer(SENTENCE_PIECE).cut("the 龘")  # LLaMA 2 puts a space before the first word
    assert (cuts.n_added, cuts.starts.tolist(), cuts.ends.tolist()) == (1, [0, 0, 3, 4, 4, 4], [0, 3, 4, 7, 7, 7])
    assert OfTokenizer(SENTENCE_PIECE).read("the 龘") == " the 龘"
    found = measure(Landmarks.of("the 龘"), cuts)
    assert (found.tokens, found.split_characters, len(found.broken_words)) == (5, 1, 0)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["a" * 100_000, "^" * 1_000_000], ids=["letters", "marks"])
def test_long_runs_are_cut_and_give_themselves_back(text: str) -> None:
    for vocabulary in EXACT:
        cuts = vocabulary.cut(text)
        assert int(cuts.ends[-1]) == len(text)
        assert cuts.decoded == text


def test_any_file_in_the_configured_folder_is_a_vocabulary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASS_BOX_LM_MODELS", str(tmp_path))
    (tmp_path / "llama").mkdir()
    (tmp_path / "llama" / "tokenizer.json").write_text(SENTENCE_PIECE.definition, encoding="utf-8")
    lower_cased()._library.save(str(tmp_path / "small.json"))
    (tmp_path / "broken.json").write_text("{}", encoding="utf-8")
    names = available_vocabularies()
    assert list(names)[:3] == ["small-world", "characters", "bytes"] and {"llama", "small.json", "broken.json"} <= set(
        names
    )
    assert load_vocabulary("llama").cut("the").ids.tolist() == OfTokenizer(SENTENCE_PIECE).cut("the").ids.tolist()
    assert load_vocabulary("small.json").cut("the").ids.tolist() == [2]
    assert load_tokenizer("llama").added_first == (1,)
    with pytest.raises(ValueError, match=r"broken\.json is not read"):
        load_vocabulary("broken.json")
    with pytest.raises(
        ValueError, match="no vocabulary is called 'none'; choose one of small-world, characters, bytes"
    ):
        load_vocabulary("none")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, there in available_vocabularies().items() if there and name != SCORED])
def test_a_vocabulary_read_alone_is_the_models(name: str) -> None:
    vocabulary = load_vocabulary(name)
    text = "今天天气 The weather <bos> 😊\n"
    cuts = vocabulary.cut(text)
    assert cuts.decoded == text
    assert np.all(cuts.ids < max(vocabulary.vocab_size, 0x110000 if name == "characters" else 0))
    if name not in ("characters", "bytes"):
        assert load_tokenizer(name).encode(text).ids == cuts.ids.tolist()
