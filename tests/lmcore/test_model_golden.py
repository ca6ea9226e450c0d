"""Logits, hidden states and attention patterns equal Hugging Face transformers' on the same weights."""

from __future__ import annotations

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from lmcore.checkpoints.families import GPT2, LLAMA
from lmcore.checkpoints.fields import Fields
from lmcore.checkpoints.weights import build
from lmcore.kv_cache import KVCache
from lmcore.trace import Trace


def tiny_gpt2(**changes):
    torch.manual_seed(1)
    config = GPT2Config(vocab_size=97, n_embd=48, n_layer=3, n_head=4, n_positions=40, initializer_range=0.1, **changes)
    return GPT2, GPT2LMHeadModel._from_config(config, attn_implementation="eager").eval()


def tiny_llama(**changes):
    torch.manual_seed(2)
    values = dict(
        vocab_size=97,
        hidden_size=48,
        intermediate_size=80,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=40,
        rms_norm_eps=1e-6,
        initializer_range=0.1,
        rope_parameters={"rope_type": "default", "rope_theta": 500.0},
    )
    config = LlamaConfig(**(values | changes))
    return LLAMA, LlamaForCausalLM._from_config(config, attn_implementation="eager").eval()


CASES = {
    "gpt2": tiny_gpt2(),
    "gpt2 with a narrow untied mlp": tiny_gpt2(n_inner=20, tie_word_embeddings=False, activation_function="relu"),
    "llama, grouped heads": tiny_llama(),
    "llama, multi-head, tied, biases": tiny_llama(
        num_key_value_heads=4, tie_word_embeddings=True, attention_bias=True, mlp_bias=True
    ),
    "llama, one kv head, wide heads": tiny_llama(num_key_value_heads=1, head_dim=20),
}


@pytest.fixture(params=CASES, scope="module")
def pair(request):
    """Return a random reference model whose biases are not zero, and ours with the same weights."""
    family, reference = CASES[request.param]
    with torch.no_grad():
        for name, parameter in reference.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(std=0.1)
    config = family.config_from(Fields(reference.config.to_dict()))
    return reference, build(config, family.weights_from(reference.state_dict(), config), request.param)


@torch.inference_mode()
def test_everything_equals_transformers(pair):
    reference, model = pair
    ids = torch.randint(0, 97, (2, 23), generator=torch.Generator().manual_seed(3))
    theirs = reference(ids, output_hidden_states=True, output_attentions=True)
    trace = Trace()
    logits = model(ids, trace=trace)
    torch.testing.assert_close(logits, theirs.logits, rtol=1e-5, atol=1e-5)
    n_layers = model.config.n_layers
    for i in range(n_layers):
        torch.testing.assert_close(trace[f"blocks.{i}.resid_pre"], theirs.hidden_states[i], rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(trace[f"blocks.{i}.attn.pattern"], theirs.attentions[i], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(trace["hidden_state"], theirs.hidden_states[n_layers], rtol=1e-5, atol=1e-5)


@torch.inference_mode()
def test_positions_go_on_behind_a_cache_as_in_transformers(pair):
    reference, model = pair
    ids = torch.randint(0, 97, (12,), generator=torch.Generator().manual_seed(4))
    theirs = reference(ids[None]).logits[0]
    cache = KVCache(model.config)
    ours = torch.cat([model(piece, cache=cache) for piece in ids.split([5, 1, 1, 4, 1])])
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_an_unknown_tensor_and_a_missing_one_are_named():
    family, reference = tiny_llama()
    config = family.config_from(Fields(reference.config.to_dict()))
    weights = family.weights_from(reference.state_dict(), config)
    with pytest.raises(ValueError, match=r"file\.x: tensor 'model\.layers\.0\.extra\.weight' is not part"):
        extra = family.weights_from({"model.layers.0.extra.weight": torch.ones(1)}, config)
        build(config, weights | extra, "file.x")
    with pytest.raises(ValueError, match=r"file\.x: tensor 'blocks\.1\.attn\.k\.weight' is missing"):
        build(config, {k: v for k, v in weights.items() if k != "blocks.1.attn.k.weight"}, "file.x")
    with pytest.raises(ValueError, match=r"'final_norm\.weight' has shape \[3\], the config asks for \[48\]"):
        build(config, weights | {"final_norm.weight": torch.ones(3)}, "file.x")
    with pytest.raises(ValueError, match=r"'final_norm\.weight' holds NaN"):
        build(config, weights | {"final_norm.weight": torch.full((48,), float("nan"))}, "file.x")


def test_a_config_value_that_would_change_the_numbers_is_refused():
    values = GPT2Config().to_dict()
    with pytest.raises(ValueError, match="scale_attn_by_inverse_layer_idx = True"):
        GPT2.config_from(Fields(values | {"scale_attn_by_inverse_layer_idx": True}))
    with pytest.raises(ValueError, match="rope_type = 'su'"):
        LLAMA.config_from(Fields(LlamaConfig().to_dict() | {"rope_parameters": {"rope_type": "su"}}))
