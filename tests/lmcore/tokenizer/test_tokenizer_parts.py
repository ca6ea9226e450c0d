"""Pieces of a merge replay, graphemes, groups of tokens, and the word-level toy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lmcore
from lmcore.tokenizer.graphemes import graphemes, shared_groups
from lmcore.tokenizer.pieces import piece_lives
from lmcore.tokenizer.word_level import TOY_VOCABULARY, WordLevelTokenizer

TOKENIZER = lmcore.builtin.tokenizer()


@given(st.text(alphabet="今天气 weather😊龘a", max_size=30))
def test_piece_lives_give_back_every_step(text: str) -> None:
    data, steps = text.encode(), TOKENIZER.replay(text)
    lives = piece_lives(TOKENIZER.first_pieces(text), steps)
    for number, pieces in enumerate([[bytes([byte]) for byte in data], *(step.pieces for step in steps)]):
        standing = [p for p in lives if p.born <= number and (p.died is None or number < p.died)]
        assert [data[p.start : p.end] for p in standing] == pieces
    assert [data[p.start : p.end] for p in lives if p.died is None] == TOKENIZER.encode(text).tokens
    assert len(lives) <= max(2 * len(data) - 1, 0)


@pytest.mark.parametrize(
    "parts",
    [
        [],
        ["a"],
        ["\u0301", "a"],
        ["\n", "\u0301"],
        ["今", "天"],
        ["👨‍👩‍👧", " ", "😊"],
        ["👍🏽", "!"],
        ["🇨🇳", "🇫🇷", "🇩"],
        ["e\u0301\u0302", "x"],
        ["❤️", "a"],
        ["a", "\r\n", "\n", "b"],
        ["x\u200d", "y"],
        ["\u1112\u1161\u11ab", "\u1100\u1173\u11af"],  # 한글 in single jamo
        ["\U000110bd\U00011083", "a"],  # a number sign before the letter it belongs to
    ],
)
def test_graphemes_are_those_of_unicode(parts: list[str]) -> None:
    text = "".join(parts)
    assert [text[start:end] for start, end in graphemes(text)] == parts


@given(st.text(max_size=40))
def test_groups_cover_all_tokens_and_end_with_whole_characters(text: str) -> None:
    found = TOKENIZER.encode(text)
    groups = shared_groups(text, found.offsets)
    assert [index for first, end in groups for index in range(first, end)] == list(range(len(found.ids)))
    for first, end in groups:
        b"".join(found.tokens[first:end]).decode()  # whole characters
        for inner in range(first + 1, end):  # and no earlier place to end
            cut = found.offsets[inner - 1][1]
            assert cut > found.offsets[inner][0] or cut not in {stop for _start, stop in graphemes(text)}


def test_an_emoji_and_a_rare_character_are_one_group_each() -> None:
    found = TOKENIZER.encode("猫😊龘")
    groups = shared_groups(found.text, found.offsets)
    assert [b"".join(found.tokens[a:b]).decode() for a, b in groups] == ["猫", "😊", "龘"]
    assert [b - a for a, b in groups] == [1, 4, 3]
    family = TOKENIZER.encode("👨‍👩‍👧")
    assert shared_groups(family.text, family.offsets) == [(0, len(family.ids))]


def test_the_toy_table_of_the_lessons() -> None:
    toy = WordLevelTokenizer(TOY_VOCABULARY)
    assert toy.encode("我喜欢猫") == [2, 3, 4]
    assert toy.encode("我喜欢狗", length=5) == [2, 3, 5, 0, 0]
    assert toy.encode("我喜欢猫", length=2) == [2, 3, 4]
    assert toy.encode("PAD 鱼") == [1] * 5  # a special entry's name in the text is text
    assert toy.decode(toy.encode("我喜欢鱼")) == "我喜欢UNK"
    assert toy.encode("") == []
    with pytest.raises(ValueError, match="UNK"):
        WordLevelTokenizer({"PAD": 0})
