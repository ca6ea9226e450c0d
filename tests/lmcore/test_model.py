"""The model's own laws, over every position encoding and head grouping."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmcore.config import ModelConfig
from lmcore.embedding import one_hot_lookup
from lmcore.kv_cache import KVCache
from lmcore.model import Model
from lmcore.position import POSITION_ENCODINGS, make_rotation, rope_frequencies
from lmcore.trace import Trace

VOCAB = 31


def small(position_encoding="rope", n_kv_heads=2, seed=0, **changes) -> Model:
    torch.manual_seed(seed)
    config = ModelConfig(
        vocab_size=VOCAB,
        d_model=16,
        n_layers=2,
        n_heads=4,
        n_kv_heads=n_kv_heads,
        context_length=24,
        position_encoding=position_encoding,
        init_std=0.4,
        **changes,
    )
    return Model(config).eval()


models = st.builds(
    small,
    st.sampled_from(sorted(POSITION_ENCODINGS)),
    st.sampled_from([1, 2, 4]),
    st.integers(0, 5),
    norm=st.sampled_from(["rmsnorm", "layernorm"]),
    gated_mlp=st.booleans(),
    rope_layout=st.sampled_from(["half_split", "interleaved"]),
)
sequences = st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=20).map(torch.tensor)


@pytest.mark.slow
@settings(max_examples=40)
@given(models, sequences)
@torch.inference_mode()
def test_the_trace_adds_up(model, ids):
    trace = Trace()
    logits = model(ids, trace=trace)
    assert torch.equal(logits, model(ids)), "traced and untraced logits differ"
    for i in range(2):
        block = f"blocks.{i}"
        pattern = trace[f"{block}.attn.pattern"]
        torch.testing.assert_close(pattern.sum(-1), torch.ones(pattern.shape[:-1]))
        assert not pattern.triu(1).any(), "a query looks into the future"
        total = trace[f"{block}.resid_pre"] + trace[f"{block}.attn.out"]
        torch.testing.assert_close(trace[f"{block}.resid_mid"], total)
        total = trace[f"{block}.resid_mid"] + trace[f"{block}.mlp.out"]
        torch.testing.assert_close(trace[f"{block}.resid_post"], total)
    torch.testing.assert_close(trace["hidden_state"] @ model.head.weight.T, logits)
    assert all(len(trace.axes(name)) == tensor.ndim for name, tensor in trace.items())


@pytest.mark.slow
@settings(max_examples=40)
@given(models, sequences, st.data())
@torch.inference_mode()
def test_cached_logits_equal_uncached(model, ids, data):
    cut = data.draw(st.integers(0, len(ids)))
    rewind = data.draw(st.integers(0, cut))
    cache = KVCache(model.config)
    if cut:
        model(ids[:cut], cache=cache)
    cache.truncate(rewind)
    if rewind < len(ids):
        torch.testing.assert_close(model(ids[rewind:], cache=cache), model(ids)[rewind:], rtol=1e-4, atol=1e-4)
    assert cache.length == len(ids)


@settings(max_examples=20)
@given(models, sequences, st.integers(0, VOCAB - 1))
@torch.inference_mode()
def test_later_tokens_change_nothing_before_them(model, ids, other):
    longer = torch.cat([ids, torch.tensor([other])])
    torch.testing.assert_close(model(longer)[:-1], model(ids), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("position_encoding", sorted(POSITION_ENCODINGS))
@torch.inference_mode()
def test_a_batch_equals_its_rows(position_encoding):
    model = small(position_encoding)
    ids = torch.randint(0, VOCAB, (3, 7))
    trace = Trace()
    logits = model(ids, trace=trace)
    torch.testing.assert_close(logits, torch.stack([model(row) for row in ids]), rtol=1e-4, atol=1e-5)
    assert trace.axes("blocks.1.attn.pattern") == ("batch", "head", "query", "key")
    cache = KVCache(model.config)
    torch.testing.assert_close(
        torch.cat([model(ids[:, :4], cache=cache), model(ids[:, 4:], cache=cache)], 1), logits, rtol=1e-4, atol=1e-5
    )


@torch.inference_mode()
def test_an_id_is_a_name():
    """Permuting ids with the rows of the embedding table permutes the logits and changes nothing else."""
    model, renamed = small(), small()
    new_name = torch.randperm(VOCAB)
    renamed.token_embedding.weight[new_name] = model.token_embedding.weight
    ids = torch.tensor([4, 8, 15, 16, 23])
    torch.testing.assert_close(renamed(new_name[ids])[:, new_name], model(ids))


@torch.inference_mode()
def test_without_positions_the_last_token_sees_a_bag():
    ids = torch.tensor([4, 8, 15, 16, 23])
    swapped = torch.tensor([15, 4, 8, 16, 23])
    # With one block no mixture of earlier tokens depends on their order; a second block sees causal prefixes.
    for name in POSITION_ENCODINGS:
        model = small(name)
        model.blocks = model.blocks[:1]
        same = torch.allclose(model(ids)[-1], model(swapped)[-1], atol=1e-5)
        assert same == (name == "none")


@torch.inference_mode()
def test_a_lookup_is_a_one_hot_product():
    table = small().token_embedding
    ids = torch.tensor([3, 3, 30, 0])
    assert torch.equal(table(ids), one_hot_lookup(ids, table.weight))


def test_tying_is_one_storage():
    tied, untied = small(), small(tie_embeddings=False)
    assert tied.head.weight is tied.token_embedding.weight
    assert untied.head.weight.data_ptr() != untied.token_embedding.weight.data_ptr()
    assert sum(p.numel() for p in untied.parameters()) - sum(p.numel() for p in tied.parameters()) == VOCAB * 16


@pytest.mark.parametrize("assign", [True, False])
@pytest.mark.parametrize("position_encoding", sorted(POSITION_ENCODINGS))
def test_a_model_made_on_the_meta_device_and_filled_is_the_model_and_tied(position_encoding, assign):
    model = small(position_encoding)
    with torch.device("meta"):
        filled = Model(model.config).eval()
    if not assign:
        filled.to_empty(device="cpu")
    state_dict = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    filled.load_state_dict(state_dict, assign=assign)
    assert filled.head.weight is filled.token_embedding.weight
    assert sum(p.numel() for p in filled.parameters()) == sum(p.numel() for p in model.parameters())
    ids = torch.tensor([4, 8, 15, 16, 23])
    if assign or position_encoding not in ("sinusoidal", "alibi"):
        torch.testing.assert_close(filled(ids), model(ids))


def test_a_head_of_its_own_is_not_loaded_into_a_tied_model():
    untied = small(tie_embeddings=False).state_dict()
    with pytest.raises(ValueError, match="differ, and tie_embeddings = True makes them one matrix"):
        small().load_state_dict(untied)
    small(tie_embeddings=False, seed=1).load_state_dict(untied, assign=True)


def test_bad_ids_are_refused_by_name():
    model = small()
    with pytest.raises(ValueError, match="ids is empty"):
        model(torch.tensor([], dtype=torch.long))
    with pytest.raises(ValueError, match="id 31 is out of range; ids lie between 0 and 30"):
        model(torch.tensor([1, 31]))
    with pytest.raises(ValueError, match="id -1 is out of range"):
        model(torch.tensor([-1, 3]))
    with pytest.raises(ValueError, match="25 tokens are more than context_length = 24"):
        model(torch.zeros(25, dtype=torch.long))
    cache = KVCache(model.config, capacity=3)
    with pytest.raises(ValueError, match="4 tokens are more than the cache's capacity of 3"):
        model(torch.zeros(4, dtype=torch.long), cache=cache)
    with pytest.raises(ValueError, match="length must lie between 0 and the 0 tokens"):
        cache.truncate(1)


def test_a_trace_is_filled_once_and_names_what_is_near():
    model, trace = small(), Trace()
    with torch.inference_mode():
        model(torch.tensor([1]), trace=trace)
        with pytest.raises(ValueError, match="already holds 'token_embedding'"):
            model(torch.tensor([1]), trace=trace)
    with pytest.raises(KeyError, match=r"blocks\.0\.attn\.pattern"):
        trace["blocks.9.attn.pattern"]


def test_rope_beyond_what_was_asked_for_so_far_is_the_same_and_can_be_learned_from():
    config = ModelConfig(vocab_size=11, d_model=8, n_layers=1, n_heads=2, context_length=4096, rope_base_local=100.0)
    fresh, used = (POSITION_ENCODINGS["rope"](config) for _ in range(2))
    with torch.inference_mode():
        used.rotation(0, 3)
        used.rotation(700, 1)
    for local, base in ((False, 10_000.0), (True, 100.0)):
        expected = make_rotation(torch.arange(690, 1500), rope_frequencies(4, base))
        for position in (fresh, used):
            rotation = position.rotation(690, 810, local)
            assert torch.equal(rotation.cos, expected.cos) and torch.equal(rotation.signed_sin, expected.signed_sin)
    x = torch.ones(1, 4, requires_grad=True)
    used.rotation(700, 1)(x).sum().backward()
    assert x.grad is not None
