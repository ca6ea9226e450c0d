"""Scored vocabularies: the winner is the tokenizers library's, the runners-up those of trying every segmentation."""

from __future__ import annotations

import math
from itertools import product

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models, normalizers, pre_tokenizers

import lmcore
from lmcore.loading.vocabulary_files import SCORED, load_vocabulary
from lmcore.tokenizer.unigram import Unigram
from lmcore.tokenizer.vocabularies import OfLibrary

# Scores whose sums never tie.
PIECES = [
    ("<unk>", 0.0),
    ("▁", -2.03),
    ("a", -3.101),
    ("b", -3.617),
    ("ab", -5.4),
    ("ba", -5.93),
    ("▁a", -4.07),
    ("aba", -6.71),
    ("天", -4.411),
    ("天气", -6.007),
    ("bb", -7.019),
    ("▁ab", -6.2003),
    ("😊x", -8.57),
    ("ab天", -9.001),
]
TEXTS = st.text("ab 天气😊xé", max_size=9)


def sentence_piece() -> OfLibrary:
    """Return a vocabulary as SentencePiece's Unigram files have it."""
    library = tokenizers.Tokenizer(models.Unigram(PIECES, unk_id=0))
    library.normalizer = normalizers.NFKC()
    library.pre_tokenizer = pre_tokenizers.Metaspace()
    library.decoder = decoders.Metaspace()
    return OfLibrary(library)


VOCABULARY = sentence_piece()
BUILTIN = load_vocabulary(SCORED)
TOKENS = {lmcore.builtin.tokenizer().token_bytes(i) for i in range(lmcore.builtin.tokenizer().vocab_size)}


def every_segmentation(word: str) -> list[tuple[float, list[str]]]:
    """Cut a word at every set of places, and keep what the vocabulary has."""
    scores, lowest = dict(PIECES), min(score for _piece, score in PIECES)
    found = []
    for marks in product([False, True], repeat=max(len(word) - 1, 0)):
        parts, start = [], 0
        for place, cut in enumerate(marks, start=1):
            if cut:
                parts.append(word[start:place])
                start = place
        parts.append(word[start:])
        own = [scores.get(part, lowest - 10.0 if len(part) == 1 else -math.inf) for part in parts]
        if all(score > -math.inf for score in own):
            found.append((math.fsum(own), parts))
    return sorted(found, reverse=True)


@given(TEXTS)
def test_the_winner_is_the_librarys(text: str) -> None:
    found = VOCABULARY.segment(text, 3)
    encoded = VOCABULARY._library.encode(text)
    assert [piece.token_id for piece in found.best[0].pieces] == encoded.ids == VOCABULARY.cut(text).ids.tolist()
    assert [piece.text for piece in found.best[0].pieces] == encoded.tokens


@given(st.text("ab天气😊x", min_size=1, max_size=9), st.integers(1, 12))
def test_the_runners_up_are_those_of_trying_everything(word: str, n: int) -> None:
    found = Unigram(PIECES, 0).segment([word], n)
    expected = every_segmentation(word)
    assert found.count == len(expected) and len(found.best) == min(n, len(expected))
    assert [each.score for each in found.best] == pytest.approx([score for score, _parts in expected[:n]])
    assert found.total == pytest.approx(math.log(math.fsum(math.exp(score) for score, _parts in expected)))
    for each in found.best:
        assert math.fsum(piece.score for piece in each.pieces) == pytest.approx(each.score)
        assert "".join(piece.text for piece in each.pieces) == word
        assert all(piece.unknown or PIECES[piece.token_id] == (piece.text, piece.score) for piece in each.pieces)
    assert len({tuple((piece.text, piece.token_id) for piece in each.pieces) for each in found.best}) == len(found.best)


def test_no_piece_crosses_from_one_word_into_the_next() -> None:
    found = Unigram(PIECES, 0).segment(["a", "b"], 5)
    assert [[piece.text for piece in each.pieces] for each in found.best] == [["a", "b"]] and found.count == 1


def test_without_an_unknown_piece_a_strange_text_has_no_segmentation() -> None:
    found = Unigram(PIECES[1:], None).segment(["aéb"], 5)
    assert found.best == () and found.count == 0 and found.total == -math.inf


def test_cuts_lie_where_the_pieces_lie() -> None:
    cuts = Unigram(PIECES, 0).segment(["ab天气"], 1).best[0].cuts()
    assert cuts.starts.tolist() == [0, 2] and cuts.ends.tolist() == [2, 8] and cuts.ids.tolist() == [4, 9]


@given(st.lists(st.sampled_from(["今天", " the", " weather", "apples", "龘", "é", "\n", " "])).map("".join))
def test_the_built_in_pieces_with_scores(text: str) -> None:
    assert isinstance(BUILTIN, OfLibrary)
    found = BUILTIN.segment(text, 2)
    assert [piece.token_id for piece in found.best[0].pieces] == BUILTIN.cut(text).ids.tolist()
    assert all(piece.unknown or piece.text.encode() in TOKENS for piece in found.best[0].pieces)


def test_a_vocabulary_without_scores_says_so() -> None:
    with pytest.raises(ValueError, match="'WordLevel', without scores"):
        OfLibrary(tokenizers.Tokenizer(models.WordLevel({"a": 0}, unk_token="a"))).segment("a", 2)
