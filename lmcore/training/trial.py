"""A trial: a model small enough to learn a text in a minute or so, and its measurements."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lmcore.analysis.training.embedding_gradient import SidesSummary, split_embedding_gradient, summarise_sides
from lmcore.config import ModelConfig, PositionEncodingName
from lmcore.corpus import Truth
from lmcore.generation import generate
from lmcore.language_model import LanguageModel
from lmcore.model import Model
from lmcore.sampling import SamplingSettings
from lmcore.tokenizer import Tokenizer
from lmcore.training.loop import TrainingSettings, TrainingStep, next_token_loss, train
from lmcore.training.texts import WINDOW, SmallWorldText, TrialText

_SIDES_WINDOWS = 4  # held-out windows whose gradient is split
_SEEDING = threading.Lock()  # initialisation draws from torch's one global generator


@dataclass(frozen=True, kw_only=True)
class TrialSettings:
    """What is tried. `steps`, `learning_rate` as in TrainingSettings, the rest as in ModelConfig.

    Raises:
        ValueError: when the trial begins, from the config or the training settings made of it.
    """

    d_model: int = 40
    tie_embeddings: bool = True
    position_encoding: PositionEncodingName = "rope"
    learning_rate: float = 1e-2
    batch_size: int = 16
    steps: int = 400
    seed: int = 1

    def config(self, vocab_size: int) -> ModelConfig:
        """Return the model's config: two blocks of four heads, SwiGLU of 3 d_model."""
        return ModelConfig(
            vocab_size=vocab_size,
            d_model=self.d_model,
            n_layers=2,
            n_heads=4,
            d_mlp=3 * self.d_model,
            context_length=2 * WINDOW,
            tie_embeddings=self.tie_embeddings,
            position_encoding=self.position_encoding,
            embedding_scale=math.sqrt(self.d_model) if self.position_encoding == "sinusoidal" else 1.0,
        )


@dataclass(frozen=True)
class TrialMeasurement:
    """What was measured at one moment.

    Attributes:
        loss: on held-out windows, nats per token.
        probs: for each probe prompt the model's next-token distribution, [vocab_size] float64.
        sides: the input-side and the output-side part of the embedding's gradient on held-out windows; they are
            summed when tied, and belong to two matrices when not.
        sample: for each probe prompt the ids of a continuation, drawn with the same random numbers every time.
        table: the token embedding [vocab_size, d_model], float16.
    """

    loss: float
    probs: tuple[np.ndarray, ...]
    sides: SidesSummary
    sample: tuple[tuple[int, ...], ...]
    table: Tensor


class Trial:
    """A model to train, its batches, and its measurements; the same settings give the same numbers.

    Args:
        settings: what is tried.
        tokenizer: whose ids the model learns.
        probes: prompts to follow; encoded here.
        text: what it reads; the small world when None.
    """

    def __init__(
        self, settings: TrialSettings, tokenizer: Tokenizer, probes: tuple[str, ...], text: TrialText | None = None
    ) -> None:
        self.settings = settings
        self.config = settings.config(tokenizer.vocab_size)
        self.training = TrainingSettings(
            steps=settings.steps, learning_rate=settings.learning_rate, warmup_steps=min(30, settings.steps // 5)
        )
        self.tokenizer = tokenizer
        self.probes = tuple(tuple(tokenizer.encode(text).ids) for text in probes)
        self._text = text or SmallWorldText(tokenizer)
        self._lm: LanguageModel | None = None
        self._held_out: Tensor | None = None

    def steps(self) -> Iterator[TrainingStep]:
        """Initialise the model and return its training, step by step."""
        with _SEEDING, torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.settings.seed)
            model = Model(self.config)
        self._lm = LanguageModel("trial", model, self.tokenizer)
        self._held_out = self._text.held_out()
        return train(model, self._text.batches(self.settings.seed, self.settings.batch_size), self.training)

    def measure(self) -> TrialMeasurement:
        """Measure the model as it is now.

        Raises:
            ValueError: before `steps` was called.
        """
        if self._lm is None or self._held_out is None:
            raise ValueError("the trial has no model yet; call steps() first.")
        lm, ids = self._lm, self._held_out
        loss = next_token_loss(lm(ids[:, :-1]), ids).item()
        probs = tuple(lm(probe)[-1].double().softmax(-1).numpy() for probe in self.probes)
        sides = summarise_sides(split_embedding_gradient(lm.model, ids[:_SIDES_WINDOWS]))
        drawn = SamplingSettings(seed=self.settings.seed)
        sample = tuple(
            tuple(step.token_id for step in generate(lm, probe, drawn, max_new_tokens=16)) for probe in self.probes
        )
        return TrialMeasurement(loss, probs, sides, sample, lm.model.token_embedding.weight.detach().half())


def grammar_loss(tokenizer: Tokenizer) -> float:
    """Return the grammar's loss on the small world's held-out windows, nats per token: the least a model can expect."""
    truth = Truth(tokenizer)
    ids = SmallWorldText(tokenizer).held_out()
    return -sum(float(truth.log_prob(row.tolist()).sum()) for row in ids) / ids[:, 1:].numel()
