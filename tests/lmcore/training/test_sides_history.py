"""The record of both gradient parts over a training: it is what the trials give, and rows are as measured."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

import lmcore
from lmcore.analysis.training.embedding_gradient import split_embedding_gradient
from lmcore.training.sides_history import MEASURE_EVERY, history_of, recorded, recorded_settings
from lmcore.training.texts import SmallWorldText
from lmcore.training.trial import Trial

pytestmark = pytest.mark.slow

TOKENIZER = lmcore.builtin.tokenizer()


@pytest.mark.parametrize("tied", [True, False])
def test_the_record_is_what_its_settings_give(tied: bool) -> None:
    trial = Trial(dataclasses.replace(recorded_settings(), tie_embeddings=tied), TOKENIZER, ())
    steps = trial.steps()
    measured = [(0, trial.measure().sides)]
    for _ in range(MEASURE_EVERY):
        next(steps)
    measured.append((MEASURE_EVERY, trial.measure().sides))
    again, record = history_of(measured), recorded()[tied]
    assert record.steps[:2] == again.steps and record.steps[-1] == recorded_settings().steps
    np.testing.assert_allclose(again.whole, record.whole[:, :2], rtol=0.02, atol=0.003)
    for row, values in record.rows.items():
        np.testing.assert_allclose(again.rows[row][:, 0], values[:, 0], rtol=1e-3, atol=1e-5)


def test_summaries_are_of_the_split_gradient() -> None:
    trial = Trial(dataclasses.replace(recorded_settings(), d_model=16, batch_size=2, steps=1), TOKENIZER, ())
    trial.steps()
    sides = trial.measure().sides
    parts = split_embedding_gradient(trial._lm.model, SmallWorldText(TOKENIZER).held_out()[:4])
    first, second = parts.input_side.double(), parts.output_side.double()
    np.testing.assert_allclose(sides.input_norms, first.norm(dim=1), rtol=1e-4, atol=1e-9)
    assert sides.output_norm == pytest.approx(second.norm().item(), rel=1e-4)
    row = int(first.norm(dim=1).argmax())
    wanted = torch.nn.functional.cosine_similarity(first[row], second[row], dim=0)
    assert sides.cosines[row] == pytest.approx(wanted.item(), abs=1e-4)
    never = TOKENIZER.encode("\0").ids[0]
    assert sides.input_norms[never] == 0 and np.isnan(sides.cosines[never]) and sides.output_norms[never] > 0
