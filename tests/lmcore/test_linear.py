"""The linear layer: whichever way it takes, the product is that of numpy in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lmcore.linear import Linear

N_POSITIONS = [1, 2, 32, 33]  # either side of where another way begins


def layer(in_features: int, out_features: int, bias: bool) -> Linear:
    torch.manual_seed(out_features)
    made = Linear(in_features, out_features, bias=bias)
    torch.nn.init.normal_(made.weight)
    if bias:
        torch.nn.init.normal_(made.bias)
    return made


def expected(made: Linear, x: torch.Tensor) -> np.ndarray:
    y = x.double().numpy() @ made.weight.detach().double().numpy().T
    return y if made.bias is None else y + made.bias.detach().double().numpy()


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("out_features", [11, 20_001])  # the second in slices and a row more
@pytest.mark.parametrize("n", N_POSITIONS)
def test_the_product_is_right_for_any_number_of_positions(n: int, out_features: int, bias: bool) -> None:
    made, x = layer(120, out_features, bias), torch.randn(n, 120)
    with torch.inference_mode():
        y = made(x)
    assert y.shape == (n, out_features)
    np.testing.assert_allclose(y.numpy(), expected(made, x), atol=1e-4)


@pytest.mark.parametrize("shape", [(120,), (1, 120), (1, 1, 120), (3, 120), (2, 5, 120), (2, 2, 3, 120)])
@pytest.mark.parametrize("out_features", [11, 20_001])
def test_the_leading_axes_stay(out_features: int, shape: tuple[int, ...]) -> None:
    made, x = layer(120, out_features, True), torch.randn(shape)
    with torch.inference_mode():
        y = made(x)
    assert y.shape == (*shape[:-1], out_features)
    np.testing.assert_allclose(y.numpy(), expected(made, x), atol=1e-4)


def test_positions_may_lie_in_any_order_in_memory() -> None:
    made, x = layer(120, 1001, False), torch.randn(120, 20).t()
    with torch.inference_mode():
        np.testing.assert_allclose(made(x).numpy(), expected(made, x), atol=1e-4)


@pytest.mark.parametrize("n", N_POSITIONS)
def test_gradients_are_those_of_torchs_own_layer(n: int) -> None:
    made, x = layer(120, 20_001, True), torch.randn(n, 120)
    made(x).square().sum().backward()
    own = torch.nn.Linear(120, 20_001)
    own.load_state_dict(made.state_dict())
    own(x).square().sum().backward()
    torch.testing.assert_close(made.weight.grad, own.weight.grad, rtol=1e-4, atol=1e-2)
    torch.testing.assert_close(made.bias.grad, own.bias.grad, rtol=1e-4, atol=1e-2)
