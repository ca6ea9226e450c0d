"""Every config field refuses what it cannot mean, naming the field and the value."""

import math

import pytest

from lmcore.config import ModelConfig

GOOD = dict(vocab_size=10, d_model=8, n_layers=1, n_heads=2, context_length=4)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("vocab_size", 0),
        ("vocab_size", -1),
        ("vocab_size", 2.0),
        ("vocab_size", True),
        ("d_model", 0),
        ("n_layers", 0),
        ("n_heads", 0),
        ("context_length", 0),
        ("n_kv_heads", 3),
        ("n_kv_heads", 0),
        ("d_head", 3),
        ("d_head", 0),
        ("d_mlp", 0),
        ("norm", "batchnorm"),
        ("activation", "tanh"),
        ("position_encoding", "xpos"),
        ("rope_layout", "half"),
        ("norm_eps", 0.0),
        ("norm_eps", math.nan),
        ("rope_base", -1.0),
        ("rope_base", math.inf),
        ("init_std", "0.02"),
        ("tie_embeddings", 1),
        ("embedding_scale", 0.0),
        ("relative_buckets", 0),
    ],
)
def test_bad_values_are_named(field, value):
    with pytest.raises(ValueError, match=field) as caught:
        ModelConfig(**(GOOD | {field: value}))
    assert str(value) in str(caught.value)


def test_what_is_left_out_is_resolved():
    config = ModelConfig(**GOOD)
    assert (config.n_kv_heads, config.d_head, config.d_mlp) == (2, 4, 32)
    with pytest.raises(ValueError, match="d_model = 9 is not a multiple of n_heads = 2"):
        ModelConfig(**(GOOD | {"d_model": 9}))
    assert ModelConfig(**(GOOD | {"d_model": 9, "d_head": 4})).d_head == 4


def test_a_dict_comes_back_and_an_unknown_field_is_refused():
    config = ModelConfig(**GOOD, tie_embeddings=False)
    assert ModelConfig.from_dict(config.to_dict()) == config
    with pytest.raises(ValueError, match="'window' = 5"):
        ModelConfig.from_dict(config.to_dict() | {"window": 5})
    with pytest.raises(ValueError, match="vocab_size"):
        ModelConfig.from_dict({"d_model": 8})
