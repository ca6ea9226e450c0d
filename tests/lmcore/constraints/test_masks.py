"""Masks against brute force: every token of a whole vocabulary tried with Python's own matchers."""

import gc
import json
import weakref

import pytest
import regex

import lmcore
from lmcore.constraints import Constraint, ConstraintRefused, Masks
from lmcore.language_model import LanguageModel
from lmcore.sampling import draw, new_generator


@pytest.fixture(scope="module")
def lm() -> LanguageModel:
    return lmcore.load("small-world")


def masks(lm: LanguageModel, kind: str, text: str) -> Masks:
    return Masks(Constraint(kind, text), lm.tokenizer, lm.end_tokens)


def walk(lm: LanguageModel, found: Masks, seed: int, most: int = 12) -> list[list[int]]:
    """Return a text that the mask allows, drawn evenly, and every beginning of it."""
    generator = new_generator(seed)
    ids: list[int] = []
    all_: list[list[int]] = [[]]
    while len(ids) < most and (not ids or ids[-1] not in lm.end_tokens):
        allowed = found.allowed(ids).double()
        ids = [*ids, draw(allowed / allowed.sum(), generator)]
        all_.append(ids)
    return all_


@pytest.mark.parametrize(
    "pattern", [r"( [a-z]+){2}\.", r"a|ab|abc", r"[^ ]*", r"(我|你)(喜欢|说)[一-鿿]{1,3}。", r"\d{2,3}"]
)
def test_a_mask_of_a_regular_expression_is_that_of_partial_matches(lm: LanguageModel, pattern: str):
    # `regex` knows whether a text can still become a match; a token that ends within a character is tried with every
    # character that could complete it.
    found, matcher = masks(lm, "regex", pattern), regex.compile(pattern)
    tokens = [lm.tokenizer.token_bytes(each) for each in range(lm.tokenizer.vocab_size)]
    characters = sorted({each for token in tokens if whole(token) for each in token.decode()} | set("一喜欢说"))
    checked = 0
    for ids in walk(lm, found, seed=len(pattern), most=5):
        if ids and ids[-1] in lm.end_tokens:
            assert matcher.fullmatch(lm.tokenizer.decode(ids[:-1]))
            continue
        before, allowed = lm.tokenizer.decode_bytes(ids), found.allowed(ids)
        for token_id in range(lm.tokenizer.vocab_size):
            if token_id in lm.end_tokens:
                expected = whole(before) and matcher.fullmatch(before.decode()) is not None
                assert found.is_met(ids) == expected
            else:
                text = before + lm.tokenizer.token_bytes(token_id)
                if not whole(text):
                    completed = completions(text, characters)
                    if any(matcher.fullmatch(each, partial=True) for each in completed):
                        assert allowed[token_id], text
                        checked += 1
                    continue
                expected = matcher.fullmatch(text.decode(), partial=True) is not None
            assert bool(allowed[token_id]) == bool(expected), (ids, token_id)
            checked += 1
    assert checked > lm.tokenizer.vocab_size / 2


def whole(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def completions(text: bytes, characters: list[str]) -> list[str]:
    cut = next((n for n in range(1, min(4, len(text) + 1)) if whole(text[:-n])), None)
    if cut is None:
        return []
    return [text[:-cut].decode() + each for each in characters if each.encode().startswith(text[-cut:])]


@pytest.mark.parametrize("choices", [("tea", "toast", " te\tx"), ("猫", "狗", "猫狗"), ("a", "ab", 'b"\\/|.*', "é")])
def test_a_mask_of_choices_holds_every_token_on_the_way_to_one(lm: LanguageModel, choices: tuple[str, ...]):
    found, seen = masks(lm, "choices", "\n".join(["", *choices, choices[0]])), set()
    for seed in range(6):
        for ids in walk(lm, found, seed):
            ended = bool(ids) and ids[-1] in lm.end_tokens
            before = lm.tokenizer.decode_bytes(ids[:-1] if ended else ids)
            if ended:
                seen.add(before.decode())
                continue
            for token_id, allowed in enumerate(found.allowed(ids).tolist()):
                if token_id in lm.end_tokens:
                    assert allowed == (before in [each.encode() for each in choices])
                else:
                    text = before + lm.tokenizer.token_bytes(token_id)
                    assert allowed == any(each.encode().startswith(text) for each in choices), text
    assert seen <= set(choices) and len(seen) > 1


SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 3}, "n": {"enum": [1, 22]}, "ok": {"type": "boolean"}},
    "required": ["name", "n"],
    "additionalProperties": False,
}


def test_texts_under_a_schema_are_valid_and_written_as_json_dumps_writes_them(lm: LanguageModel):
    found = masks(lm, "json_schema", json.dumps(SCHEMA))
    for seed in range(8):
        *_, ids = walk(lm, found, seed, most=200)
        text = lm.tokenizer.decode(ids[:-1])
        value = json.loads(text)
        assert value["n"] in (1, 22) and len(value["name"]) <= 3 and set(value) <= {"name", "n", "ok"}
        assert isinstance(value.get("ok", True), bool)
        assert text.startswith('{"name": "') and ', "n": ' in text


def test_going_back_and_branching_gives_the_masks_of_a_fresh_start(lm: LanguageModel):
    found = masks(lm, "regex", r"( [a-z]+){1,3}\.")
    texts = [*walk(lm, found, 1), *walk(lm, found, 2)[::-1], *walk(lm, found, 3)]
    for ids in texts:
        assert found.allowed(ids).equal(masks(lm, "regex", r"( [a-z]+){1,3}\.").allowed(ids))


def test_what_left_the_constraint_is_refused_and_leaves_no_trace(lm: LanguageModel):
    found = masks(lm, "choices", "tea\ntoast")
    t, x, e = (lm.tokenizer.encode(each).ids[0] for each in "txe")
    before = found.allowed([t])
    with pytest.raises(ConstraintRefused, match="from token 2 on") as refused:
        found.allowed([t, x, e])
    assert refused.value.reason == "left"
    assert found.allowed([t]).equal(before)
    complete = lm.tokenizer.encode("tea").ids
    assert found.allowed(complete).nonzero().flatten().tolist() == list(lm.end_tokens)
    with pytest.raises(ConstraintRefused, match="nothing after it"):
        found.allowed([*complete, *lm.end_tokens, t])


@pytest.mark.parametrize(
    ("kind", "text", "says"),
    [
        ("regex", "", "regular expression cannot be used: it is empty."),
        ("regex", "(", "regular expression cannot be used: unclosed group."),
        ("regex", "(?=a)b", "look-around, including look-ahead and look-behind, is not supported."),
        ("regex", r"(a)\1", "backreferences are not supported."),
        ("regex", "a\\", "it ends in a single backslash."),
        ("regex", "a\ud800", "half a surrogate pair"),
        ("regex", r"[^\x00-\U0010ffff]", "no text of this vocabulary's tokens fits it."),
        ("choices", "\n\n", "list of choices cannot be used: it has no choice; write one per line."),
        ("json_schema", "{", "JSON schema cannot be used: line 1, column 2"),
        ("json_schema", "[]", "it must be a JSON object"),
        ("json_schema", '{"type": "objekt"}', "Invalid type: objekt."),
        ("json_schema", '{"not": {"type": "string"}}', 'Unimplemented keys: ["not"].'),
        ("json_schema", '{"type": "string", "minLength": 3, "maxLength": 2}', "Unsatisfiable schema"),
        ("json_schema", "[" * 1500, "JSON schema cannot be used"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(lm: LanguageModel, kind: str, text: str, says: str):
    with pytest.raises(ConstraintRefused) as refused:
        masks(lm, kind, text)
    assert says in str(refused.value) and "\n" not in str(refused.value)
    assert refused.value.reason == "grammar"


def test_a_constraint_is_checked_when_it_is_made():
    with pytest.raises(ValueError, match="one of regex, json_schema, choices"):
        Constraint("lark", "a")
    with pytest.raises(ValueError, match="at most 2,000 are read"):
        Constraint("regex", "a" * 2001)


def test_a_grammar_that_grows_too_large_ends_in_a_sentence(lm: LanguageModel):
    found = masks(lm, "regex", r"(\w+\s?){1000}")
    a = lm.tokenizer.encode("a").ids
    with pytest.raises(ConstraintRefused, match="cannot be followed any further: .+\\.") as refused:
        found.allowed(a * 1000)
    assert refused.value.reason == "stuck"
    assert found.allowed(a)[a].all()  # and is there again for a shorter text


def test_without_an_end_token_there_is_no_constraint(lm: LanguageModel):
    with pytest.raises(ConstraintRefused, match="no token that ends a text"):
        Masks(Constraint("regex", "a"), lm.tokenizer, ())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["smollm2-135m-instruct", "gemma-3-270m"])
def test_the_tokens_of_other_tokenizers_are_their_bytes(name: str):
    if name not in {each.name for each in lmcore.available() if each.installed}:
        pytest.skip(f"{name} is not installed")
    lm = lmcore.load(name)
    choices = ("猫 says hi", "🦊", "tea\tparty")
    found = masks(lm, "choices", "\n".join(choices))
    for ids in [each for seed in range(4) for each in walk(lm, found, seed)]:
        ended = bool(ids) and ids[-1] in lm.end_tokens
        before = lm.tokenizer.decode_bytes(ids[:-1] if ended else ids)
        if not ended:
            tokens = map(lm.tokenizer.token_bytes, range(lm.tokenizer.vocab_size))
            controls = set(lm.tokenizer.special_tokens.values()) | set(lm.end_tokens)
            wanted = [each.encode() for each in choices]
            expected = {
                n
                for n, token in enumerate(tokens)
                if n not in controls and any(each.startswith(before + token) for each in wanted)
            } | (set(lm.end_tokens) if before in wanted else set())
            assert set(found.allowed(ids).nonzero().flatten().tolist()) == expected


def test_a_tokenizer_that_nobody_holds_any_more_leaves_memory():
    definition = lmcore.load("small-world").tokenizer.definition
    tokenizer = lmcore.Tokenizer(definition)
    found = Masks(Constraint("choices", "tea"), tokenizer, (0,))
    gone = weakref.ref(tokenizer)
    del tokenizer, found
    gc.collect()
    assert gone() is None
