"""The small world's probabilities are exact, and its tokenizer gives its words."""

import random
from collections import Counter
from itertools import islice
from math import fsum, log
from pathlib import Path

import numpy as np
import pytest

import lmcore.tokenizer.tokenizer as tokenizer_module
from lmcore.corpus import Truth, build_tokenizer, small_world, windows
from lmcore.corpus.grammar import Scene, expand, fill, table
from lmcore.tokenizer import Tokenizer

pytestmark = pytest.mark.slow

WORLD = small_world()
TOKENIZER = Tokenizer.from_file(Path(tokenizer_module.__file__).parents[1] / "builtin" / "tokenizer.json")
TRUTH = Truth(TOKENIZER)
END = TOKENIZER.special_tokens["<|endoftext|>"]
CODES = {language: {tuple(TOKENIZER.encode(t).ids): p for t, p in s.items()} for language, s in WORLD.scenes.items()}
# The document structure, written here a second time on purpose.
START, STAY, STOP = 0.5, 0.9, 0.1


def following(text: str) -> dict[str, float]:
    """What may follow the text, with its probability, by the Truth."""
    probs = TRUTH.next_token_probs(TOKENIZER.encode(text).ids)
    assert probs is not None, text
    return {TOKENIZER.decode([i]): float(probs[i]) for i in np.flatnonzero(probs).tolist()}


# --- the notation


def test_choices_are_in_proportion_to_their_weights() -> None:
    assert expand("a [b*3|c [d|e*4]|] .") == pytest.approx({"a b .": 0.6, "a c d .": 0.04, "a c e .": 0.16, "a .": 0.2})


def test_a_weight_belongs_to_the_whole_alternative() -> None:
    assert expand("[[a|b] c*2|d]") == pytest.approx({"a c": 1 / 3, "b c": 1 / 3, "d": 1 / 3})
    assert expand("[[a|b]*2|d]") == pytest.approx({"a": 1 / 3, "b": 1 / 3, "d": 1 / 3})


def test_a_slot_is_the_same_everywhere_in_its_line() -> None:
    scene = Scene(1, "{who} sees {who} [x|y]", table("who weight", "Tom / 3", "Ann / 1"))
    assert scene.lines() == pytest.approx(
        {"Tom sees Tom x": 0.375, "Tom sees Tom y": 0.375, "Ann sees Ann x": 0.125, "Ann sees Ann y": 0.125}
    )


@pytest.mark.parametrize("text", ["[a|b", "a] b", "a | b"])
def test_a_bracket_out_of_place_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="bracket"):
        expand(text)


def test_an_unknown_slot_and_a_short_row_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"slot \{who\}"):
        fill("{who} sings", {"what": "x"})
    with pytest.raises(ValueError, match="1 cells.*2 fields"):
        table("a b", "x")


# --- the scenes


@pytest.mark.parametrize("language", ["zh", "en"])
def test_scenes_are_a_distribution_small_enough_to_enumerate(language: str) -> None:
    scenes = WORLD.scenes[language]
    assert fsum(scenes.values()) == pytest.approx(1, abs=1e-12)
    assert min(scenes.values()) > 0
    assert len(scenes) <= 10_000
    assert all(text.endswith("\n") and text.count("\n") == 1 for text in scenes)


def test_no_scene_is_in_both_languages() -> None:
    assert not WORLD.scenes["zh"].keys() & WORLD.scenes["en"].keys()


def test_no_template_mark_is_left_in_a_text() -> None:
    assert not set("[]{}|*/") & set("".join(WORLD.words))
    assert not [text for text in WORLD.scenes["en"] if "  " in text or " ." in text or " ," in text]
    assert not [text for text in WORLD.scenes["zh"] if " " in text or any("a" <= c <= "z" for c in text)]


def test_sampled_scenes_have_their_probabilities() -> None:
    rng = random.Random(0)
    n = 20_000
    drawn = Counter(WORLD.sample_scene("zh", rng) for _ in range(n))
    for text, p in sorted(WORLD.scenes["zh"].items(), key=lambda item: -item[1])[:20]:
        assert drawn[text] == pytest.approx(n * p, abs=5 * (n * p) ** 0.5)


# --- the words


CHINESE = (
    "今天 天气 不错 很 好 真 差 黑便 我 喜欢 猫 狗 苹果 小明 小红 患者 服用 华法林 后 出现 国王 女王 男人 女人 ， 。"
)
ENGLISH = "weather cat dog king queen man woman apple Apple bank river money"


@pytest.mark.parametrize("word", [*CHINESE.split(), *(f" {word}" for word in ENGLISH.split()), "Apple", "The"])
def test_a_word_is_one_token(word: str) -> None:
    assert TOKENIZER.encode(word).tokens == [word.encode()]


def test_encoding_plain_text_gives_the_words_of_the_grammar() -> None:
    wrong = [
        text
        for text, words in WORLD.words.items()
        if TOKENIZER.encode(text).tokens != [word.encode() for word in words]
    ]
    assert wrong == []


def test_scenes_encode_alone_as_they_do_in_a_document() -> None:
    rng = random.Random(1)
    for _ in range(20):
        document = WORLD.sample_document(rng)
        alone = [token_id for text in document.splitlines(True) for token_id in TOKENIZER.encode(text).ids]
        assert TOKENIZER.encode(document).ids == alone


def test_the_shipped_tokenizer_is_the_one_training_makes() -> None:
    built = build_tokenizer()
    assert built.merges == TOKENIZER.merges
    assert built.special_tokens == TOKENIZER.special_tokens


# --- what the world says


def test_the_weather_follows_the_softmax_of_its_logits() -> None:
    logits = np.array([3.8, 2.3, 1.5, 1.2, 0.5])
    expected = dict(zip(["不错", "很", "好", "差", "真"], np.exp(logits) / np.exp(logits).sum(), strict=True))
    assert following("今天天气") == pytest.approx(expected, abs=1e-12)
    assert following("小明喜欢小红，可是小红喜欢小刚。\n今天天气") == pytest.approx(expected, abs=1e-12)
    assert not [text for text in WORLD.scenes["zh"] if text.rfind("今天天气") > 0]


def test_order_decides_who_gives_what() -> None:
    assert following("小明喜欢小红，所以") == pytest.approx({"小明": 1.0})
    assert following("小红喜欢小明，所以") == pytest.approx({"小红": 1.0})
    assert following("小明喜欢小红，所以小明送给小红一") == pytest.approx({"朵": 1.0})
    assert following("小红喜欢小明，所以小红送给小明一") == pytest.approx({"本": 1.0})
    assert following("Tom likes Anna, so Tom gives Anna a") == pytest.approx({" flower": 1.0})
    assert following("Anna likes Tom, so Anna gives Tom a") == pytest.approx({" book": 1.0})


def test_a_word_has_two_meanings_by_what_stands_before_it() -> None:
    assert {"很", "发布"} <= following("苹果").keys()
    assert "便宜" in following("水果店里，苹果很")
    assert "发布" in following("手机店里，苹果")
    assert "发布" not in following("水果店里，苹果")
    assert {" of", " on"} == following("The bank").keys()
    assert {" to", " by"} == following("Tom went to the bank").keys()
    assert following("Tom has some money, so he goes to the bank") == pytest.approx({" to": 1.0})
    assert following("Tom wants to catch a fish, so he sits on the bank") == pytest.approx({" of": 1.0})


def test_the_likeliest_effect_of_warfarin_is_the_one_known_for_it() -> None:
    assert following("患者服用华法林后出现")["黑便"] == pytest.approx(0.7)
    assert following("The patient took warfarin and then had")[" black"] == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("text", "sums"),
    [("三加四等于", {"七": 1.0}), ("Three plus four is", {" seven": 1.0}), ("法国的首都是", {"巴黎": 1.0})],
)
def test_facts_are_certain(text: str, sums: dict[str, float]) -> None:
    assert following(text) == pytest.approx(sums)


# --- the exact truth against enumeration


def enumerated(beginning: tuple[int, ...], zh: float, stop: float) -> np.ndarray:
    """The next token by going through every scene: `zh` is P(Chinese), `stop` P(<|endoftext|> instead of a scene)."""
    probs = np.zeros(TOKENIZER.vocab_size)
    for language, share in (("zh", zh), ("en", 1 - zh)):
        for ids, p in CODES[language].items():
            if ids[: len(beginning)] == beginning:
                probs[ids[len(beginning)]] += share * p
    probs *= (1 - stop) / probs.sum()
    probs[END] += stop
    return probs


def test_truth_is_the_enumeration_of_all_scenes() -> None:
    rng = random.Random(2)
    for _ in range(12):
        first = tuple(TOKENIZER.encode(WORLD.sample_scene(rng.choice(["zh", "en"]), rng)).ids)
        cut = rng.randrange(len(first))
        for before in ([], [END]):
            np.testing.assert_allclose(
                TRUTH.next_token_probs([*before, *first[:cut]]), enumerated(first[:cut], START, 0), atol=1e-12
            )
        zh = STAY if first in CODES["zh"] else 1 - STAY
        np.testing.assert_allclose(TRUTH.next_token_probs(first), enumerated((), zh, STOP), atol=1e-12)
        np.testing.assert_allclose(
            TRUTH.next_token_probs([*first, *first[:1]]), enumerated(first[:1], zh, 0), atol=1e-12
        )
        np.testing.assert_allclose(TRUTH.next_token_probs([*first, END]), enumerated((), START, 0), atol=1e-12)


def test_truth_sums_to_one_everywhere_in_a_window() -> None:
    (batch,) = islice(windows(3, 4, 64, TOKENIZER), 1)
    for row in batch:
        for i in range(len(row)):
            probs = TRUTH.next_token_probs(row[:i])
            assert probs is not None
            assert probs.sum() == pytest.approx(1, abs=1e-12)
            assert (probs >= 0).all()
            assert probs[row[i]] > 0 or (i == 0 and row[0] == END)


@pytest.mark.parametrize("text", ["天今", "今天天气坏", "今天天气不错，适合出去玩。\n\n", "\n", "q"])
def test_what_the_world_never_says_has_no_truth(text: str) -> None:
    ids = TOKENIZER.encode(text).ids
    assert TRUTH.next_token_probs(ids) is None
    assert np.isneginf(TRUTH.log_prob([END, *ids])[-1])


def test_a_document_ends_only_after_a_scene() -> None:
    assert TRUTH.next_token_probs([END, END]) is None
    assert TRUTH.next_token_probs([*TOKENIZER.encode("今天").ids, END]) is None
    with pytest.raises(ValueError, match="ids is empty"):
        TRUTH.log_prob([])


def test_log_prob_is_the_distribution_of_each_position() -> None:
    for batch in islice(windows(4, 2, 64, TOKENIZER), 2):
        for row in batch:
            expected = [log(TRUTH.next_token_probs(row[:i])[row[i]]) for i in range(1, len(row))]
            np.testing.assert_allclose(TRUTH.log_prob(row), expected, atol=1e-9)


def document_log_prob(scenes: list[str]) -> float:
    """ln P(document), its ending included, straight from the scenes' probabilities."""
    total, before = log(START), None
    for text in scenes:
        language = "zh" if text in WORLD.scenes["zh"] else "en"
        if before is not None:
            total += log(1 - STOP) + log(STAY if language == before else 1 - STAY)
        total += log(WORLD.scenes[language][text])
        before = language
    return total + log(STOP)


def test_log_prob_of_a_document_is_the_product_of_its_choices() -> None:
    rng = random.Random(5)
    for _ in range(20):
        document = WORLD.sample_document(rng)
        ids = [END, *TOKENIZER.encode(document).ids, END]
        assert TRUTH.log_prob(ids).sum() == pytest.approx(document_log_prob(document.splitlines(True)), abs=1e-8)


def test_the_entropy_rate_is_what_sampled_documents_show() -> None:
    rng = random.Random(6)
    documents = [WORLD.sample_document(rng).splitlines(True) for _ in range(4000)]
    surprise = np.array([-document_log_prob(document) for document in documents])
    tokens = np.array([1 + sum(len(WORLD.words[text]) for text in document) for document in documents])
    rate = surprise.sum() / tokens.sum()
    error = np.std(surprise - rate * tokens) / (tokens.mean() * len(documents) ** 0.5)
    assert error < 0.01
    assert TRUTH.entropy_rate() == pytest.approx(rate, abs=4 * error)


# --- training windows


def test_windows_are_made_by_their_seed() -> None:
    first, again, other = (np.stack(list(islice(windows(seed, 4, 32, TOKENIZER), 3))) for seed in (7, 7, 8))
    assert first.shape == (3, 4, 33)
    assert first.dtype == np.int64
    np.testing.assert_array_equal(first, again)
    assert (first != other).any(axis=2).all()
    assert len(np.unique(first.reshape(-1, 33), axis=0)) == 12


def test_windows_are_the_worlds_own_text_half_of_them_from_a_documents_start() -> None:
    rows = np.concatenate(list(islice(windows(9, 5, 128, TOKENIZER), 40)))
    assert (rows[:, 0] == END).sum() == len(rows) / 2
    assert all(np.isfinite(TRUTH.log_prob(row)).all() for row in rows)
    assert all(TRUTH.next_token_probs(row[:1]) is not None for row in rows)


def test_windows_have_the_worlds_proportions() -> None:
    rows = np.concatenate(list(islice(windows(10, 50, 128, TOKENIZER), 20)))
    (newline,) = TOKENIZER.encode("\n").ids
    after = rows[:, 1:][rows[:, :-1] == newline]
    assert (after == END).mean() == pytest.approx(STOP, abs=5 * (STOP * (1 - STOP) / len(after)) ** 0.5)
    first = np.where(rows[:, 0] == END, rows[:, 1], rows[:, 0])
    expected = TRUTH.next_token_probs([])
    for token_id in np.argsort(expected)[-10:]:
        p = expected[token_id]
        assert (first == token_id).mean() == pytest.approx(p, abs=5 * (p * (1 - p) / len(first)) ** 0.5)


def test_windows_refuse_an_empty_batch() -> None:
    with pytest.raises(ValueError, match="batch_size is 0"):
        next(windows(0, 0, 8, TOKENIZER))
