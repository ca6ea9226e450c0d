"""Errors of hidden states, against traces in numpy."""

from __future__ import annotations

import numpy as np
import pytest

import lmcore
from lmcore.analysis.quantisation.hidden import relative_errors

IDS = [5, 17, 90, 3, 41]


def test_they_are_the_relative_distance_at_every_place_and_position() -> None:
    lm, other = lmcore.load("small-world"), lmcore.load("small-world:q5_0")
    found = relative_errors(lm, other, IDS)
    exact, moved = lmcore.Trace(), lmcore.Trace()
    lm(IDS, trace=exact)
    other(IDS, trace=moved)
    assert list(found) == ["blocks.0.resid_pre", *(f"blocks.{i}.resid_post" for i in range(4)), "hidden_state"]
    for name, errors in found.items():
        a, b = exact[name].double().numpy(), moved[name].double().numpy()
        wanted = np.sqrt(((b - a) ** 2).sum(-1) / (a**2).sum(-1))
        np.testing.assert_allclose(errors, wanted, rtol=1e-9, err_msg=name)
        assert errors.min() > 0
    assert not any(errors.any() for errors in relative_errors(lm, lm, IDS).values())


def test_models_of_other_shapes_are_refused() -> None:
    tokenizer = lmcore.builtin.tokenizer()
    config = lmcore.ModelConfig(vocab_size=tokenizer.vocab_size, d_model=8, n_layers=1, n_heads=1, context_length=8)
    small = lmcore.LanguageModel("tiny", lmcore.Model(config), tokenizer)
    with pytest.raises(ValueError, match="small-world has 4 blocks of d_model 128, tiny 1 of 8: only models of one"):
        relative_errors(lmcore.load("small-world"), small, IDS)
