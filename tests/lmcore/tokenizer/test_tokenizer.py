"""The tokenizer is byte-exact, its offsets and merges are right, and it agrees with the tokenizers library."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tokenizers
from hypothesis import example, given
from hypothesis import strategies as st

import lmcore.tokenizer.tokenizer as tokenizer_module
from lmcore.tokenizer import REPLAY_LIMIT, TextStream, Tokenizer

SHIPPED = Path(tokenizer_module.__file__).parents[1] / "builtin" / "tokenizer.json"
TOKENIZER = Tokenizer.from_file(SHIPPED)
LIBRARY = tokenizers.Tokenizer.from_file(str(SHIPPED))
RANKS = {pair: rank for rank, pair in enumerate(TOKENIZER.merges)}
END_OF_TEXT = TOKENIZER.special_tokens["<|endoftext|>"]
FAMILY = "👨\u200d👩\u200d👧"

# Texts near the small world make merges fire; st.text() alone almost never does.
TEXTS = st.text() | st.lists(
    st.sampled_from(["今天", "天气", "不", "错", " the", " weather", "er", "the", "华法", "林", "\n", "é", FAMILY])
).map("".join)


@given(TEXTS)
@example("social  spaces   stay ")
@example("nul \x00, crlf \r\n, bom \ufeff")
@example(FAMILY)
@example("今天天气😊")
@example("e\u0301 is not é")
def test_every_text_comes_back_byte_for_byte(text: str) -> None:
    encoding = TOKENIZER.encode(text)
    assert b"".join(encoding.tokens) == text.encode()
    assert encoding.tokens == [TOKENIZER.token_bytes(token_id) for token_id in encoding.ids]
    assert TOKENIZER.decode(encoding.ids) == text
    assert TOKENIZER.decode_bytes(encoding.ids) == text.encode()


@given(TEXTS)
@example("a<|endoftext|>b")
def test_special_tokens_on_gives_the_ids_of_the_tokenizers_library(text: str) -> None:
    assert TOKENIZER.encode(text, special_tokens=True).ids == LIBRARY.encode(text).ids


@given(TEXTS)
@example("a😊b")
def test_offsets_are_the_characters_whose_bytes_the_token_has(text: str) -> None:
    encoding = TOKENIZER.encode(text)
    assert len(encoding.offsets) == len(encoding.ids)
    first = 0
    for token, offset in zip(encoding.tokens, encoding.offsets, strict=True):
        last = first + len(token) - 1
        touched = [
            i for i in range(len(text)) if len(text[:i].encode()) <= last and first < len(text[: i + 1].encode())
        ]
        assert offset == (touched[0], touched[-1] + 1)
        assert token in text[slice(*offset)].encode()
        first = last + 1


def test_offsets_of_the_weather_prompt_slice_its_words() -> None:
    encoding = TOKENIZER.encode("今天天气不错")
    assert [encoding.text[start:end] for start, end in encoding.offsets] == ["今天", "天气", "不错"]


def test_a_special_string_is_text_unless_asked_for() -> None:
    text = "x<|endoftext|>y"
    plain = TOKENIZER.encode(text)
    control = TOKENIZER.encode(text, special_tokens=True)
    assert END_OF_TEXT not in plain.ids
    assert control.ids.count(END_OF_TEXT) == 1
    assert control.tokens == [b"x", b"<|endoftext|>", b"y"]
    assert control.offsets == [(0, 1), (1, 14), (14, 15)]
    assert TOKENIZER.decode(plain.ids) == TOKENIZER.decode(control.ids) == text


def test_threads_do_not_see_each_others_special_tokens_switch() -> None:
    text = "x<|endoftext|>y" * 20
    switches = [i % 2 == 0 for i in range(400)]
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(lambda switch: TOKENIZER.encode(text, switch).ids.count(END_OF_TEXT), switches))
    assert counts == [20 if switch else 0 for switch in switches]


def test_a_lone_surrogate_is_refused_by_position() -> None:
    for use in (TOKENIZER.encode, TOKENIZER.encode_ids, TOKENIZER.replay, TOKENIZER.first_pieces):
        with pytest.raises(ValueError, match=r"character 2 of the text is U\+D800"):
            use("ab\ud800c")


@pytest.mark.parametrize("bad", [-1, TOKENIZER.vocab_size])
def test_an_id_out_of_range_is_refused_by_value(bad: int) -> None:
    for use in (TOKENIZER.token_bytes, lambda token_id: TOKENIZER.decode([token_id])):
        with pytest.raises(ValueError, match=f"id {bad} "):
            use(bad)


def test_ids_that_are_not_whole_characters_keep_their_bytes() -> None:
    ids = TOKENIZER.encode("😊").ids
    assert len(ids) > 1
    assert TOKENIZER.decode_bytes(ids[:1]) == "😊".encode()[: len(TOKENIZER.token_bytes(ids[0]))]
    assert TOKENIZER.decode(ids[:1]) == "\ufffd"


@pytest.mark.slow
@pytest.mark.parametrize("text", ["a" * 100_000, "^" * 1_000_000], ids=["letters", "marks"])
def test_long_runs_encode(text: str) -> None:
    encoding = TOKENIZER.encode(text)
    assert TOKENIZER.decode(encoding.ids) == text
    assert encoding.offsets[-1][1] == len(text)


@given(TEXTS)
@example("今天天气不错，适合出去玩。")
@example("The weather is nice, so we can play in the park.")
def test_replayed_merges_end_at_the_tokens(text: str) -> None:
    pieces = [bytes([byte]) for byte in text.encode()]
    for step in TOKENIZER.replay(text):
        assert TOKENIZER.merges[step.rank] == step.pair
        assert b"".join(step.pieces) == text.encode()
        assert len(step.pieces) < len(pieces)
        neighbours = {pair for pair in zip(pieces, pieces[1:], strict=False) if pair in RANKS}
        assert {step.pair, *(pair for _rank, pair in step.runners_up)} == neighbours
        waiting = [rank for rank, _pair in step.runners_up]
        assert [step.rank, *waiting] == sorted(RANKS[pair] for pair in neighbours)
        pieces = step.pieces
    assert pieces == TOKENIZER.encode(text).tokens


def test_replay_refuses_a_text_beyond_its_limit() -> None:
    TOKENIZER.replay("b" * REPLAY_LIMIT)
    with pytest.raises(ValueError, match=f"{REPLAY_LIMIT + 1} characters.*at most {REPLAY_LIMIT}"):
        TOKENIZER.replay("b" * (REPLAY_LIMIT + 1))


def test_each_merge_makes_the_next_token() -> None:
    smallest = 256 + len(TOKENIZER.special_tokens)
    assert TOKENIZER.vocab_size == smallest + len(TOKENIZER.merges)
    assert [TOKENIZER.token_bytes(smallest + rank) for rank in range(len(TOKENIZER.merges))] == [
        left + right for left, right in TOKENIZER.merges
    ]


def test_no_token_joins_half_a_character_to_another() -> None:
    for left, right in TOKENIZER.merges:
        token = left + right
        parts_of_one = token.decode("utf-8", errors="ignore") == "" and len(token) < 4
        assert parts_of_one or token.decode("utf-8"), token


def test_training_keeps_merges_inside_words() -> None:
    tokenizer = Tokenizer.train(["今天", "天气", "不错", " cat"] * 5, vocab_size=400)
    assert [token.decode() for token in tokenizer.encode("今天天气不错 cat").tokens] == ["今天", "天气", "不错", " cat"]
    # 气 and 不 stood side by side in no word, only across two.
    assert [token.decode() for token in tokenizer.encode("气不").tokens] == ["气", "不"]


def test_training_stops_at_vocab_size() -> None:
    tokenizer = Tokenizer.train(["abcdef"], vocab_size=259)
    assert tokenizer.vocab_size == 259
    assert len(tokenizer.merges) == 2
    assert Tokenizer.train(["ab"], 258, special_tokens=["<a>", "<b>"]).special_tokens == {"<a>": 0, "<b>": 1}


def test_training_refuses_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match="vocab_size is 256; it must be 257"):
        Tokenizer.train(["a"], vocab_size=256)
    with pytest.raises(ValueError, match=r"U\+E000"):
        Tokenizer.train(["a\ue000b"], vocab_size=300)


def test_a_saved_tokenizer_is_the_same(tmp_path: Path) -> None:
    TOKENIZER.save(tmp_path / "tokenizer.json")
    again = Tokenizer.from_file(tmp_path / "tokenizer.json")
    assert again.merges == TOKENIZER.merges
    assert again.special_tokens == TOKENIZER.special_tokens
    assert (tmp_path / "tokenizer.json").read_bytes() == SHIPPED.read_bytes()


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("normalizer", {"normalizer": {"type": "NFC"}}),
        ("pre_tokenizer", {"pre_tokenizer": {"type": "Whitespace"}}),
        ("pre_tokenizer", {"pre_tokenizer": None}),
        ("model", {"model": {}}),
    ],
)
def test_a_file_that_would_be_read_wrongly_is_refused(field: str, change: dict[str, object]) -> None:
    fields = json.loads(SHIPPED.read_text(encoding="utf-8"))
    with pytest.raises(ValueError, match=field):
        Tokenizer(json.dumps(fields | change))


@given(st.lists(st.binary(max_size=5) | st.sampled_from([b"\xe5", b"\xa5\xbd", b"\xf0\x9f\x98", b"\x8a", b"ok"])))
def test_a_stream_gives_whole_characters_and_loses_nothing(tokens: list[bytes]) -> None:
    stream = TextStream()
    shown = ""
    for i, token in enumerate(tokens):
        shown += stream.push(token)
        seen = b"".join(tokens[: i + 1])
        assert len(stream.pending) <= 3
        assert shown == seen[: len(seen) - len(stream.pending)].decode("utf-8", errors="replace")
    assert shown + stream.finish() == b"".join(tokens).decode("utf-8", errors="replace")
    assert stream.pending == b""


def test_a_stream_holds_back_an_unfinished_character() -> None:
    stream = TextStream()
    assert [stream.push(bytes([byte])) for byte in "😊".encode()] == ["", "", "", "😊"]
    stream.push("好".encode()[:2])
    assert stream.pending == "好".encode()[:2]
    assert stream.finish() == "\ufffd"
