"""One storage or two: told by memory, whatever the values are."""

import pytest
import torch
from torch import nn

import lmcore
from lmcore.analysis.tying.storage import storage_of, storage_of_model
from lmcore.parameters import count_model


@pytest.mark.parametrize("name", lmcore.builtin.names())
def test_built_in_models_lie_as_their_config_says(name: str) -> None:
    lm = lmcore.load(name)
    found = storage_of_model(lm.model)
    assert found.shared == found.same_object == lm.config.tie_embeddings
    assert (found.max_difference == 0) == lm.config.tie_embeddings
    others = count_model(lm.model) - found.numbers
    assert others == sum(
        p.numel() for n, p in lm.model.named_parameters() if n.split(".")[0] not in ("token_embedding", "head")
    )


def test_equal_values_are_not_one_storage() -> None:
    table = nn.Parameter(torch.arange(6.0).view(3, 2))
    copy = nn.Parameter(table.detach().clone())
    found = storage_of(table, copy)
    assert (found.max_difference, found.shared, found.same_object, found.numbers) == (0.0, False, False, 12)
    with torch.no_grad():
        copy[0, 0] = 9.0
    assert storage_of(table, copy).max_difference == 9.0


def test_two_parameters_over_one_storage_are_shared_without_being_one_object() -> None:
    table = nn.Parameter(torch.zeros(3, 2))
    found = storage_of(table, nn.Parameter(table.data))
    assert (found.shared, found.same_object, found.size, found.numbers) == (True, False, 6, 6)


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match=r"\[3, 2\] and \[2, 3\]"):
        storage_of(torch.zeros(3, 2), torch.zeros(2, 3))
