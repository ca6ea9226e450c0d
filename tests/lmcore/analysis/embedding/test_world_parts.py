"""Languages and parts against scenes that are drawn, and against the list of tokens that occur."""

import random
from collections import Counter

import lmcore
from lmcore.analysis.embedding.world_parts import uses
from lmcore.corpus.occurring import occurring_tokens
from lmcore.corpus.world import small_world

TOKENIZER = lmcore.builtin.tokenizer()
USES = uses(TOKENIZER)


def use_of(text: str):
    (token,) = TOKENIZER.encode(text).ids
    return USES[token]


def test_what_is_in_no_text_is_what_does_not_occur() -> None:
    assert len(USES) == TOKENIZER.vocab_size
    unused = {token for token, use in enumerate(USES) if use.language == "none"}
    assert unused == set(range(TOKENIZER.vocab_size)) - set(occurring_tokens(TOKENIZER))
    assert unused == {token for token, use in enumerate(USES) if use.part == "none"}


def test_languages_are_those_of_scenes_that_are_drawn() -> None:
    rng = random.Random(4)
    seen: dict[str, Counter[int]] = {"zh": Counter(), "en": Counter()}
    for language, counts in seen.items():
        for _ in range(3000):
            counts.update(TOKENIZER.encode(small_world().sample_scene(language, rng)).ids)
    for token in seen["zh"].keys() | seen["en"].keys():
        where = [language for language in seen if seen[language][token]]
        assert USES[token].language == (where[0] if len(where) == 1 else "both") or USES[token].language == "both"
    newline = use_of("\n")
    assert (newline.language, newline.part) == ("both", "several")


def test_words_belong_to_the_part_they_are_told_in() -> None:
    assert (use_of("国王").language, use_of("国王").part) == ("zh", "royalty")
    assert (use_of(" queen").language, use_of(" queen").part) == ("en", "royalty")
    assert use_of("华法林").part == "medicine"
    assert use_of("。").part == "several" and use_of("。").language == "zh"
