"""The small world: two languages of scenes, each scene with an exactly known probability, and documents of scenes.

    document  ->  scene scene ... scene <|endoftext|>

The first scene is Chinese or English with probability 1/2 each. After a scene the document ends with probability
STOP; otherwise the next scene follows, in the same language with probability STAY. Given its language a scene is drawn
independently of what was before. A scene is one to a few sentences and ends with its only newline.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import accumulate
from math import fsum

from lmcore.corpus import chinese, english
from lmcore.corpus.grammar import Scene

LANGUAGES = ("zh", "en")
START = 0.5
"""Probability that a document begins in Chinese."""
STAY = 0.9
"""Probability that the next scene of a document is in the language of the scene before."""
STOP = 0.1
"""Probability that a document ends after a scene."""
END_OF_TEXT = "<|endoftext|>"

_PUNCTUATION = frozenset(".,?!:")
_SENTENCE_END = frozenset(".?!")


def chinese_words(line: str) -> tuple[str, ...]:
    """The words of a Chinese line as they stand in the text, ended by a newline.

    >>> chinese_words("我 喜欢 猫 。")
    ('我', '喜欢', '猫', '。', '\\n')
    """
    return (*line.split(), "\n")


def english_words(line: str) -> tuple[str, ...]:
    """The words of an English line as they stand in the text: with their space and, at a sentence's start, a capital.

    >>> english_words("the cat sleeps . I see it .")
    ('The', ' cat', ' sleeps', '.', ' I', ' see', ' it', '.', '\\n')
    """
    words: list[str] = []
    starts_sentence = True
    for word in line.split():
        if word in _PUNCTUATION:
            words.append(word)
        else:
            written = word[0].upper() + word[1:] if starts_sentence else word
            words.append(f" {written}" if words else written)
        starts_sentence = word in _SENTENCE_END
    return (*words, "\n")


class SmallWorld:
    """Every scene of both languages, its words and its probability.

    Attributes:
        scenes: For each language, scene text -> probability given the language (each sums to 1).
        words: Scene text -> its words, which joined are the text.
    """

    def __init__(self) -> None:
        """Expand the grammars."""
        self.words: dict[str, tuple[str, ...]] = {}
        self.scenes = {
            "zh": self._expand(chinese.SCENES, chinese_words),
            "en": self._expand(english.SCENES, english_words),
        }
        self._drawing = {
            language: (list(scenes), list(accumulate(scenes.values()))) for language, scenes in self.scenes.items()
        }

    def _expand(self, scenes: Iterable[Scene], split: Callable[[str], tuple[str, ...]]) -> dict[str, float]:
        total = fsum(scene.weight for scene in scenes)
        probabilities: dict[str, float] = {}
        for scene in scenes:
            for line, probability in scene.lines().items():
                words = split(line)
                text = "".join(words)
                if self.words.setdefault(text, words) != words:
                    raise ValueError(
                        f"scene {text!r} is divided into words in two ways: {self.words[text]} and {words}."
                    )
                probabilities[text] = probabilities.get(text, 0.0) + probability * scene.weight / total
        return probabilities

    def word_counts(self, total: int) -> Counter[str]:
        """How often each word occurs in `total` words on the average, rounded, at least once."""
        expected: dict[str, float] = {}
        for scenes in self.scenes.values():
            for text, probability in scenes.items():
                for word in self.words[text]:
                    expected[word] = expected.get(word, 0.0) + probability
        scale = total / fsum(expected.values())
        return Counter({word: max(1, round(count * scale)) for word, count in expected.items()})

    def sample_scene(self, language: str, rng: random.Random) -> str:
        """One scene of the language ("zh" or "en"), ended by a newline."""
        texts, cumulative = self._drawing[language]
        return rng.choices(texts, cum_weights=cumulative)[0]

    def sample_document(self, rng: random.Random) -> str:
        """One document: its scenes, without the <|endoftext|> that follows them."""
        language = "zh" if rng.random() < START else "en"
        scenes = [self.sample_scene(language, rng)]
        while rng.random() >= STOP:
            if rng.random() >= STAY:
                language = "en" if language == "zh" else "zh"
            scenes.append(self.sample_scene(language, rng))
        return "".join(scenes)


@lru_cache(maxsize=1)
def small_world() -> SmallWorld:
    """The one small world, expanded at the first call (about a tenth of a second)."""
    return SmallWorld()
