"""Which tensors are quantised, and what they take."""

from __future__ import annotations

import gguf
import pytest
import torch

import lmcore
from lmcore.quantisation import KINDS, kind_for, round_weights, size_of
from lmcore.quantisation.tensors import rounded
from tests.lmcore.checkpoints.tiny_gguf import write_gguf


def test_all_matrices_but_positions_and_routers_change_and_tied_ones_stay_one() -> None:
    for name, left in (("small-world-learned", "position."), ("small-world-experts", "mlp.router.weight")):
        before = lmcore.load(name).model
        after = lmcore.load(f"{name}:q4_0").model
        assert after.head.weight is after.token_embedding.weight
        moved = dict(after.named_parameters())
        for key, tensor in before.named_parameters():
            stays = tensor.ndim == 1 or left in key
            assert torch.equal(tensor, moved[key]) == stays, key
            if not stays:
                numbers = gguf.quants.quantize(tensor.detach().numpy(), gguf.GGMLQuantizationType.Q4_0)
                wanted = gguf.quants.dequantize(numbers, gguf.GGMLQuantizationType.Q4_0)
                assert torch.equal(moved[key], torch.from_numpy(wanted)), key


def test_a_quantised_file_read_back_has_the_numbers_of_the_model_by_name(tmp_path) -> None:
    write_gguf("gpt2", tmp_path / "exact.gguf")
    for name in ("q4_1", "q8_0"):
        path = tmp_path / f"{name}.gguf"
        write_gguf("gpt2", path, gguf.GGMLQuantizationType[name.upper()])
        read = dict(lmcore.load(path).model.named_parameters())
        ours = lmcore.load(f"{tmp_path / 'exact.gguf'}:{name}").model.named_parameters()
        fitting = {key: tensor for key, tensor in ours if tensor.ndim == 1 or tensor.shape[-1] % 32 == 0}
        assert sum(tensor.ndim > 1 for tensor in fitting.values()) >= 3
        assert all(torch.equal(tensor, read[key]) for key, tensor in fitting.items() if "position" not in key)


def test_rows_that_do_not_fit_fall_back_as_in_llama_cpp() -> None:
    tq = KINDS["tq1_0"]
    assert (kind_for(tq, 512), kind_for(tq, 576), kind_for(tq, 48)) == (tq, KINDS["q4_0"], None)
    matrix = torch.randn(3, 48)
    assert torch.equal(rounded("x", matrix, tq), matrix.half().float())
    model = torch.nn.ModuleDict({"a": torch.nn.Linear(576, 2, bias=True), "b": torch.nn.Linear(48, 2, bias=False)})
    stored = {each.name: (each.kind, each.nbytes) for each in size_of(model, tq)}
    assert stored == {"a.weight": ("q4_0", 2 * 18 * 18), "a.bias": ("float32", 8), "b.weight": ("float16", 192)}


def test_others_who_have_the_tensors_keep_them_and_progress_is_told() -> None:
    lm = lmcore.load("small-world")
    kept = {name: tensor.detach() for name, tensor in lm.model.named_parameters()}
    copies = {name: tensor.clone() for name, tensor in kept.items()}
    told: list[float] = []
    round_weights(lm.model, KINDS["q5_0"], told.append)
    assert all(torch.equal(kept[name], copies[name]) for name in kept)
    assert told == sorted(told) and told[-1] == 1.0


def test_numbers_too_large_for_float16_are_refused() -> None:
    with pytest.raises(ValueError, match="x holds numbers too large for q4_0: its scales are kept in float16"):
        rounded("x", torch.full((1, 32), 1e7), KINDS["q4_0"])
