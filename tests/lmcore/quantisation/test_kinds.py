"""Every kind against the package that writes GGUF files, and int8 by row against numpy."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
import torch
from gguf.quants import dequantize, quantize

from lmcore.quantisation import KINDS, kind_named

OF_FILES = {name: gguf.GGMLQuantizationType[name.upper()] for name in KINDS if name != "int8"}


@pytest.fixture(scope="module")
def weights() -> torch.Tensor:
    """Rows of very different size, with zeros, equal numbers, ties and one outlier among them."""
    torch.manual_seed(1)
    rows = torch.randn(40, 512) * 10 ** torch.linspace(-4, 2, 40).unsqueeze(-1)
    rows[0] = 0
    rows[1, :64], rows[2], rows[3, :32] = 1.5, -2.0, 0.0
    rows[4] = torch.arange(512) / 2
    rows[5, 7] = 1000.0
    return rows


def test_each_kind_gives_the_numbers_and_the_bytes_of_the_package_that_writes_the_files(weights) -> None:
    for name, type_ in OF_FILES.items():
        kind = KINDS[name]
        assert gguf.GGML_QUANT_SIZES[type_] == (kind.block, kind.block_bytes), name
        with np.errstate(divide="ignore"):
            written = quantize(weights.numpy(), type_)
        assert kind.n_bytes(tuple(weights.shape)) == written.nbytes, name
        ours = kind.blocks_of(weights)
        np.testing.assert_array_equal(ours.values.view(weights.shape).numpy(), dequantize(written, type_), name)
        assert set(ours.codes.unique().tolist()) <= set(kind.levels), name


def test_all_types_that_the_package_can_write_are_there() -> None:
    row = np.ones((1, 256), dtype=np.float32)
    written = set()
    for type_ in gguf.GGMLQuantizationType:
        try:
            quantize(row, type_)
        except NotImplementedError:
            continue
        written.add(type_.name.lower())
    assert written - {"f32", "f16", "bf16"} == set(OF_FILES)


def test_int8_is_absmax_by_row(weights) -> None:
    rows = weights.numpy()[3:]
    scale = np.abs(rows).max(1, keepdims=True) / np.float32(127)
    blocks = KINDS["int8"].blocks_of(weights[3:])
    np.testing.assert_array_equal(blocks.codes.numpy(), np.rint(rows / scale))
    np.testing.assert_array_equal(blocks.values.numpy(), scale * np.rint(rows / scale).astype(np.float32))
    assert KINDS["int8"].bits_per_weight(512) == 8 + 32 / 512
    assert not KINDS["int8"].blocks_of(torch.zeros(2, 5)).values.any()


def test_what_does_not_fit_is_said() -> None:
    with pytest.raises(ValueError, match="q4_0 takes 32 weights at a time; rows of 48 are no multiple of it"):
        KINDS["q4_0"].blocks_of(torch.zeros(2, 48))
    with pytest.raises(ValueError, match="no kind of quantisation is called 'q3_k'; choose one of q8_0, q5_1"):
        kind_named("q3_k")
