"""A training that a session has started: what it reads, its thread, and the maps made of it so far."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from torch import Tensor

import lmcore
from lmcore.analysis.embedding.pca import principal_components
from lmcore.analysis.training.alignment import aligned
from lmcore.corpus import Truth
from lmcore.corpus.occurring import occurring_tokens
from lmcore.tokenizer import Tokenizer
from lmcore.training.background import BackgroundTraining
from lmcore.training.texts import OwnText, SmallWorldText, character_tokenizer
from lmcore.training.trial import Trial, TrialSettings, grammar_loss
from pages.locale.languages import ENGLISH

PROBES = {"zh": "今天天气", "en": "The weather today is"}
MEASURE_EVERY = 20  # steps


@dataclass(frozen=True)
class Reading:
    """What is read.

    Attributes:
        own: a text of the reader's own; None for the small world.
        characters: its characters are the tokens, not pieces of the built-in tokenizer.
        probe: the prompt followed, for an own text.
    """

    own: str | None = None
    characters: bool = False
    probe: str = ""

    def tokenizer(self) -> Tokenizer:
        """Return whose ids the model learns."""
        return character_tokenizer(self.own or "") if self.characters else lmcore.builtin.tokenizer()

    @property
    def probes(self) -> tuple[str, ...]:
        """The prompts followed."""
        return tuple(PROBES.values()) if self.own is None else (self.probe,)


@dataclass
class TrainingRun:
    """A training and what is needed to show it.

    Attributes:
        settings, reading: what is tried, and on what.
        tokenizer: whose ids the model learns.
        training: the thread at work.
        truth: the grammar's next-token distribution after each probe; none for an own text.
        floor: the grammar's own loss on the held-out windows, nats per token; None for an own text.
        shown: ids of the tokens that occur, the most frequent first.
        maps: for each measurement so far the rows of the shown tokens in two dimensions, [N, 2].
    """

    settings: TrialSettings
    reading: Reading
    tokenizer: Tokenizer
    training: BackgroundTraining
    truth: tuple[np.ndarray, ...]
    floor: float | None
    shown: list[int]
    maps: list[Tensor] = field(default_factory=list)

    def probe(self, language: str) -> int:
        """Return which of the probes is followed in a language."""
        return list(PROBES).index(language if language in PROBES else ENGLISH) if self.reading.own is None else 0

    def map_at(self, index: int) -> Tensor:
        """Return the map of a measurement: two principal components, turned towards the map before it."""
        measured = self.training.progress.measurements
        while len(self.maps) <= index:
            points = measured[len(self.maps)][1].table[self.shown]
            placed = principal_components(points).project(points, 2)
            self.maps.append(aligned(placed, self.maps[-1]) if self.maps else placed)
        return self.maps[index]


@dataclass(frozen=True)
class _World:
    """What is known of the small world, the same for every training."""

    tokenizer: Tokenizer
    truth: tuple[np.ndarray, ...]
    floor: float
    shown: tuple[int, ...]


def least_loss() -> float:
    """Return the grammar's own loss on the held-out windows of the small world, nats per token."""
    return _world().floor


@cache
def _world() -> _World:
    tokenizer = lmcore.builtin.tokenizer()
    grammar = Truth(tokenizer)
    truth = [grammar.next_token_probs(tokenizer.encode(probe).ids) for probe in PROBES.values()]
    often = Counter(SmallWorldText(tokenizer).held_out().flatten().tolist())
    shown = sorted(occurring_tokens(tokenizer), key=lambda token: -often[token])
    said = tuple(probs for probs in truth if probs is not None)
    assert len(said) == len(PROBES), "every probe is a text of the grammar"
    return _World(tokenizer, said, grammar_loss(tokenizer), tuple(shown))


def start(settings: TrialSettings, reading: Reading) -> TrainingRun:
    """Start a training in a thread of its own.

    Raises:
        ValueError: for a text that is too short or too long, or an empty probe.
    """
    if reading.own is None:
        world = _world()
        trial = Trial(settings, world.tokenizer, reading.probes)
        return TrainingRun(
            settings, reading, world.tokenizer, _training(trial), world.truth, world.floor, list(world.shown)
        )
    if not reading.probe:
        raise ValueError("the prompt to follow is empty; type the beginning of a sentence.")
    tokenizer = reading.tokenizer()
    text = OwnText(reading.own, tokenizer)
    shown = [token for token, _count in Counter(text.ids.tolist()).most_common()]
    trial = Trial(settings, tokenizer, reading.probes, text)
    return TrainingRun(settings, reading, tokenizer, _training(trial), (), None, shown)


def _training(trial: Trial) -> BackgroundTraining:
    return BackgroundTraining(trial.steps, trial.measure, MEASURE_EVERY)
