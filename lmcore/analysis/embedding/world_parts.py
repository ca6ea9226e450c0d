"""Where in the small world a token is used: in which of the two languages, and in what kind of scene."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from lmcore.corpus import chinese, english
from lmcore.corpus.world import END_OF_TEXT, chinese_words, english_words
from lmcore.tokenizer import Tokenizer

Language = Literal["zh", "en", "both", "none"]
Part = Literal[
    "weather", "likes", "two senses", "medicine", "royalty", "places", "counting", "daily life", "several", "none"
]
LANGUAGES: tuple[Language, ...] = get_args(Language)
PARTS: tuple[Part, ...] = get_args(Part)

_SCENES: dict[Part, tuple[list, list]] = {
    "weather": (chinese.WEATHER, english.WEATHER),
    "likes": (chinese.LIKES, english.LIKES),
    "two senses": (chinese.APPLE, [*english.APPLE, *english.BANK]),
    "medicine": (chinese.MEDICINE, english.MEDICINE),
    "royalty": (chinese.ROYAL, english.ROYAL),
    "places": (chinese.PLACES, english.PLACES),
    "counting": (chinese.COUNTING, english.COUNTING),
    "daily life": ([*chinese.DAILY, *chinese.STORIES], [*english.DAILY, *english.STORIES]),
}


@dataclass(frozen=True)
class Use:
    """How a token is used.

    Attributes:
        language: "zh", "en", "both", or "none" when no text of the small world has it.
        part: the kind of scene in which more than half of its occurrences are expected; "several" when there is no
            such kind, "none" when no text has it.
    """

    language: Language
    part: Part


@lru_cache(maxsize=4)
def uses(tokenizer: Tokenizer) -> tuple[Use, ...]:
    """Return how each token of the vocabulary is used in the small world, exactly, from its grammar."""
    counts: dict[int, dict[tuple[str, Part], float]] = defaultdict(lambda: defaultdict(float))
    words_of: tuple[Callable[[str], tuple[str, ...]], ...] = (chinese_words, english_words)
    for part, scenes_by_language in _SCENES.items():
        for language, scenes, words in zip(("zh", "en"), scenes_by_language, words_of, strict=True):
            expected: dict[str, float] = defaultdict(float)
            for scene in scenes:
                for line, probability in scene.lines().items():
                    for word in words(line):
                        expected[word] += scene.weight * probability
            for word, count in expected.items():
                for token in tokenizer.encode(word).ids:
                    counts[token][language, part] += count
    found = [_use(counts.get(token, {})) for token in range(tokenizer.vocab_size)]
    found[tokenizer.special_tokens[END_OF_TEXT]] = Use("both", "several")  # it ends documents of every kind
    return tuple(found)


def _use(counts: dict[tuple[str, Part], float]) -> Use:
    if not counts:
        return Use("none", "none")
    languages = {language for language, _part in counts}
    by_part: dict[Part, float] = defaultdict(float)
    for (_language, part), count in counts.items():
        by_part[part] += count
    most = max(by_part, key=by_part.__getitem__)
    return Use(
        "both" if len(languages) == 2 else "zh" if "zh" in languages else "en",
        most if by_part[most] > sum(by_part.values()) / 2 else "several",
    )
