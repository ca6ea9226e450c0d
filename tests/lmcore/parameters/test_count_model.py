"""Counting a model's parameters: memory once, by identity."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from lmcore.parameters import count_model


def tied_pair(device: str) -> nn.ModuleDict:
    pair = nn.ModuleDict(
        {"table": nn.Embedding(7, 3, device=device), "head": nn.Linear(3, 7, bias=False, device=device)}
    )
    pair["head"].weight = pair["table"].weight
    return pair


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_tied_parameter_counts_once(device: str) -> None:
    assert count_model(tied_pair(device)) == 21


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_equal_values_in_separate_memory_count_twice(device: str) -> None:
    pair = tied_pair(device)
    pair["head"].weight = nn.Parameter(pair["table"].weight.detach().clone())
    assert count_model(pair) == 42


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_two_parameters_over_one_storage_count_once(device: str) -> None:
    pair = tied_pair(device)
    pair["head"].weight = nn.Parameter(pair["table"].weight.detach())
    assert pair["head"].weight is not pair["table"].weight
    assert count_model(pair) == 21


def test_halves_of_one_buffer_both_count() -> None:
    buffer = torch.zeros(30)
    assert count_model(nn.ParameterList([nn.Parameter(buffer[:15]), nn.Parameter(buffer[15:])])) == 30


def test_deep_copy_stays_tied_but_is_other_memory() -> None:
    pair = tied_pair("cpu")
    assert count_model(nn.ModuleList([pair, copy.deepcopy(pair)])) == 2 * 21
