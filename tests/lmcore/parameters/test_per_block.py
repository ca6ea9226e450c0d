"""One block's part of the counts, against the weights of a block built with torch."""

import pytest
import torch

from lmcore import Model
from lmcore.parameters import PRESETS, compute, count
from lmcore.parameters.per_block import block_matrices, mlp_compute


def test_the_worked_example() -> None:
    assert sum(row.size for row in block_matrices(PRESETS["curriculum-12x768"])) == 6_488_064


def test_llama_7b_mlp_of_a_layer() -> None:
    rows = mlp_compute(PRESETS["llama-7b"])
    assert len(rows) == 3 and {row.macs for row in rows} == {4096 * 11008}
    assert (sum(row.macs for row in rows), sum(row.flops for row in rows)) == (135_266_304, 270_532_608)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n, c in PRESETS.items() if c.architecture == "decoder" and not c.extra_parts])
def test_matrices_are_those_of_our_block(name: str) -> None:
    config = PRESETS[name]
    with torch.device("meta"):
        block = Model(config).blocks[0]
    expected = {n.removesuffix(".weight"): p.numel() for n, p in block.named_parameters() if p.ndim == 2}
    assert {row.name.removeprefix("blocks."): row.size for row in block_matrices(config)} == expected


@pytest.mark.parametrize("name", [n for n, c in PRESETS.items() if c.architecture == "decoder"])
def test_all_layers_are_n_layers_times_one(name: str) -> None:
    config = PRESETS[name]
    assert sum(row.macs for row in mlp_compute(config)) * config.n_layers == compute(config).group_macs["mlp"]


@pytest.mark.parametrize("name", PRESETS)
def test_every_formula_multiplies_to_its_size(name: str) -> None:
    for row in (*block_matrices(PRESETS[name]), *count(PRESETS[name]).rows):
        product = 1
        for factor in row.formula.split(" x "):
            product *= int(factor)
        assert product == row.size
