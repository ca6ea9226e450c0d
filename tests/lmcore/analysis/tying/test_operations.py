"""What keeps a tie: read off torch's own objects, and each outcome against what torch documents."""

from __future__ import annotations

import pytest
import torch

from lmcore.analysis.tying.operations import OPERATIONS, Outcome, TableAndHead, Translator, named, run, tied

MATRIX = 12 * 8 * 4  # bytes of [12, 8] in float32

# After each operation: the matrices' Parameters and storages are one?
KEEPS = {
    "assign_to_head": (True, True),
    "assign_to_embedding": (True, True),
    "copy_the_values": (False, False),
    "wrap_the_data": (False, True),
    "step": (True, True),
    "step_after_copying": (False, False),
    "to_dtype": (True, True),
    "deepcopy": (True, True),
    "deepcopy_of_parts": (False, False),
    "state_dict": (False, True),
    "load_into_tied": (True, True),
    "load_into_untied": (False, False),
    "safetensors_file": (True, True),
    "to_meta": (False, False),
    "made_on_meta": (True, True),
    "from_meta": (False, False),
    "assign_to_meta": (False, True),
    "three_ways": (True, True),
    "bias": (True, True),
    "padding": (True, True),
}


def tried(operation: str) -> Outcome:
    return run(operation, vocab_size=12, d_model=8)


def test_every_operation_is_judged_here() -> None:
    assert set(KEEPS) == set(OPERATIONS)


@pytest.mark.parametrize("operation", KEEPS)
def test_outcome(operation: str) -> None:
    outcome = tried(operation)
    one_parameter, one_storage = KEEPS[operation]
    matrices = [held for held in outcome.after if len(held.shape) == 2]
    assert outcome.matrices_share == one_storage == (len({held.storage for held in matrices}) == 1)
    assert (len({held.parameter for held in matrices}) == 1) == one_parameter
    width = 2 if operation == "to_dtype" else 4
    bias = 12 * 4 if operation == "bias" else 0
    assert outcome.nbytes == 12 * 8 * width * (1 if one_storage else len(matrices)) + bias


def test_which_values_survive_an_assignment() -> None:
    assert list(tried("assign_to_head").facts.values()) == [True]
    assert list(tried("assign_to_embedding").facts.values()) == [False]
    assert tried("assign_to_head").after[1].parameter == 1 and tried("assign_to_embedding").after[0].parameter == 2


def test_a_conversion_keeps_the_parameter_and_replaces_its_storage() -> None:
    outcome = tried("to_dtype")
    assert {held.parameter for held in (*outcome.before, *outcome.after)} == {1}
    assert {held.storage for held in outcome.before}.isdisjoint({held.storage for held in outcome.after})
    assert {held.dtype for held in outcome.before} == {"float32"} and {held.dtype for held in outcome.after} == {
        "float16"
    }


def test_on_the_meta_device_addresses_prove_nothing() -> None:
    lost, kept = tried("to_meta").after, tried("made_on_meta").after
    assert {held.address for held in (*lost, *kept)} == {0}
    assert len({held.storage for held in lost}) == 2 and len({held.storage for held in kept}) == 1


def test_files_hold_the_matrix_once() -> None:
    facts = tried("safetensors_file").facts
    assert facts["list(load_file(file))"] == ["embedding.weight"]
    assert str(facts["save_file(pair.state_dict(), file)"]).startswith("RuntimeError: Some tensors share memory")
    assert MATRIX < facts["bytes in the file"] < 2 * MATRIX
    saved = run("state_dict", 1000, 64).facts["bytes saved"]
    assert 1000 * 64 * 4 < saved < 1.1 * 1000 * 64 * 4


def test_a_step_moves_copies_apart_and_a_tied_matrix_as_one() -> None:
    assert list(tried("step").facts.values()) == [0.0]
    assert list(tried("step_after_copying").facts.values())[0] > 0.01


def test_three_names_one_parameter() -> None:
    outcome = tried("three_ways")
    assert [len({held.storage for held in side}) for side in (outcome.before, outcome.after)] == [3, 1]
    assert list(outcome.facts.values()) == [1]
    assert isinstance(OPERATIONS["three_ways"][0](12, 8), Translator)


def test_the_padding_row_gets_a_gradient_through_the_tied_head_alone() -> None:
    lookup, whole = tried("padding").facts.values()
    assert lookup == 0.0 and whole > 0
    pair = tied(12, 8, padding_idx=0)
    hidden = pair.embedding(torch.tensor([1, 0])).detach()
    error = (hidden @ pair.head.weight.T).softmax(-1) - torch.nn.functional.one_hot(torch.tensor([2, 1]), 12)
    torch.nn.functional.cross_entropy(pair(torch.tensor([1, 0])), torch.tensor([2, 1])).backward()
    torch.testing.assert_close(pair.embedding.weight.grad[0], (error.T @ hidden / 2)[0])


def test_running_leaves_torchs_random_state_and_repeats() -> None:
    state = torch.random.get_rng_state()
    with torch.inference_mode(False), torch.no_grad():
        first, again = (tried("step_after_copying").facts for _ in range(2))
    assert first == again and torch.equal(torch.random.get_rng_state(), state)


def test_names_are_told_by_identity() -> None:
    assert [name for name in named(TableAndHead(4, 2, bias=True))] == ["embedding.weight", "head.weight", "head.bias"]
    assert len({id(tensor) for tensor in named(tied(4, 2)).values()}) == 1


def test_what_cannot_be_tried_is_named() -> None:
    with pytest.raises(ValueError, match="'share'"):
        run("share", 12, 8)
    with pytest.raises(ValueError, match="3 x 8"):
        run("step", 3, 8)
