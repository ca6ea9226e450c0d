"""Tiny random models of every family, as transformers makes them, and folders with them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import torch
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    GptOssConfig,
    GptOssForCausalLM,
    GraniteConfig,
    GraniteForCausalLM,
    GraniteMoeHybridConfig,
    GraniteMoeHybridForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    Olmo2Config,
    Olmo2ForCausalLM,
    OlmoeConfig,
    OlmoeForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
    SmolLM3Config,
    SmolLM3ForCausalLM,
    StableLmConfig,
    StableLmForCausalLM,
)

from lmcore.tokenizer import Tokenizer

SIZES = dict(
    hidden_size=48,
    intermediate_size=64,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=40,
    initializer_range=0.1,
    rms_norm_eps=1e-6,
    bos_token_id=0,
    eos_token_id=0,
)
SMALL_ROPE = {"rope_type": "default", "rope_theta": 500.0}
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
SMALL = SIZES | dict(hidden_size=32, num_hidden_layers=2, pad_token_id=0)
LONG_ROPE = {
    "rope_type": "longrope",
    "rope_theta": 500.0,
    "partial_rotary_factor": 0.5,
    "short_factor": [1.0, 1.5],
    "long_factor": [1.0, 4.0],
}
GPT_OSS = SMALL | dict(
    head_dim=16,
    num_local_experts=5,
    num_experts_per_tok=2,
    sliding_window=6,
    rope_parameters={
        "rope_type": "yarn",
        "rope_theta": 500.0,
        "factor": 8.0,
        "truncate": False,
        "original_max_position_embeddings": 16,
    },
)
CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "gpt2": (GPT2LMHeadModel, GPT2Config, dict(n_embd=48, n_layer=3, n_head=4, n_positions=40, initializer_range=0.1)),
    "llama": (LlamaForCausalLM, LlamaConfig, SIZES | dict(rope_parameters=SMALL_ROPE)),
    "llama tied, biases, llama3 scaling": (
        LlamaForCausalLM,
        LlamaConfig,
        SIZES | dict(rope_parameters=LLAMA3_ROPE, tie_word_embeddings=True, attention_bias=True, mlp_bias=True),
    ),
    "llama, linear scaling, wide heads": (
        LlamaForCausalLM,
        LlamaConfig,
        SIZES | dict(rope_parameters={"rope_type": "linear", "rope_theta": 500.0, "factor": 4.0}, head_dim=20),
    ),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config, SIZES | dict(rope_parameters=SMALL_ROPE)),
    "qwen2 with windows": (
        Qwen2ForCausalLM,
        Qwen2Config,
        SIZES | dict(use_sliding_window=True, sliding_window=6, max_window_layers=1, tie_word_embeddings=True),
    ),
    "qwen3, yarn": (
        Qwen3ForCausalLM,
        Qwen3Config,
        SIZES
        | dict(
            head_dim=20,
            rope_parameters={
                "rope_type": "yarn",
                "rope_theta": 500.0,
                "factor": 4.0,
                "original_max_position_embeddings": 10,
            },
        ),
    ),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config, SIZES | dict(head_dim=20, rope_parameters=SMALL_ROPE)),
    "gemma3": (
        Gemma3ForCausalLM,
        Gemma3TextConfig,
        SIZES
        | dict(head_dim=20, num_key_value_heads=1, sliding_window=5, query_pre_attn_scalar=20, num_hidden_layers=7),
    ),
    "gemma3, soft cap, linear scaling": (
        Gemma3ForCausalLM,
        Gemma3TextConfig,
        SIZES
        | dict(
            head_dim=16,
            sliding_window=5,
            query_pre_attn_scalar=24,
            num_hidden_layers=7,
            final_logit_softcapping=3.0,
            rope_parameters={
                "full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            },
        ),
    ),
    "mistral": (MistralForCausalLM, MistralConfig, SMALL | dict(sliding_window=6, rope_parameters=SMALL_ROPE)),
    "mistral without windows": (
        MistralForCausalLM,
        MistralConfig,
        SMALL | dict(sliding_window=None, head_dim=12, rope_parameters=SMALL_ROPE),
    ),
    "phi3": (Phi3ForCausalLM, Phi3Config, SMALL | dict(sliding_window=9, rope_parameters=SMALL_ROPE)),
    "phi3, short longrope, partial rotation": (
        Phi3ForCausalLM,
        Phi3Config,
        SMALL | dict(original_max_position_embeddings=30, tie_word_embeddings=True, rope_parameters=LONG_ROPE),
    ),
    "phi3, longrope": (
        Phi3ForCausalLM,
        Phi3Config,
        SMALL | dict(original_max_position_embeddings=8, rope_parameters=LONG_ROPE),
    ),
    "olmo2": (Olmo2ForCausalLM, Olmo2Config, SMALL | dict(rope_parameters=SMALL_ROPE)),
    "granite": (
        GraniteForCausalLM,
        GraniteConfig,
        SMALL
        | dict(
            embedding_multiplier=12.0,
            attention_multiplier=0.3,
            residual_multiplier=0.22,
            logits_scaling=8.0,
            tie_word_embeddings=True,
        ),
    ),
    "granite 4": (
        GraniteMoeHybridForCausalLM,
        GraniteMoeHybridConfig,
        SMALL
        | dict(
            num_local_experts=0,
            num_experts_per_tok=0,
            shared_intermediate_size=64,
            layer_types=["full_attention"] * 2,
            position_embedding_type="rope",
            mamba_n_heads=4,
            embedding_multiplier=12.0,
            attention_multiplier=0.3,
            residual_multiplier=0.22,
            logits_scaling=8.0,
            tie_word_embeddings=True,
            rope_parameters=SMALL_ROPE,
        ),
    ),
    "stablelm": (
        StableLmForCausalLM,
        StableLmConfig,
        SMALL | dict(use_qkv_bias=True, layer_norm_eps=1e-5, rope_parameters={"partial_rotary_factor": 0.25}),
    ),
    "gpt_neox": (
        GPTNeoXForCausalLM,
        GPTNeoXConfig,
        SMALL | dict(layer_norm_eps=1e-5, rope_parameters={"rope_theta": 500.0, "partial_rotary_factor": 0.25}),
    ),
    "gpt_neox, one after the other": (
        GPTNeoXForCausalLM,
        GPTNeoXConfig,
        SMALL | dict(use_parallel_residual=False, rope_parameters={"partial_rotary_factor": 1.0}),
    ),
    "gemma2": (
        Gemma2ForCausalLM,
        Gemma2Config,
        SMALL
        | dict(
            head_dim=12,
            sliding_window=5,
            query_pre_attn_scalar=12,
            attn_logit_softcapping=2.0,
            final_logit_softcapping=3.0,
        ),
    ),
    "smollm3": (SmolLM3ForCausalLM, SmolLM3Config, SMALL | dict(num_hidden_layers=4)),
    "mixtral": (MixtralForCausalLM, MixtralConfig, SMALL | dict(num_local_experts=5, num_experts_per_tok=2)),
    "qwen3_moe": (
        Qwen3MoeForCausalLM,
        Qwen3MoeConfig,
        SMALL | dict(head_dim=12, num_experts=6, num_experts_per_tok=3, moe_intermediate_size=24, norm_topk_prob=True),
    ),
    "olmoe": (OlmoeForCausalLM, OlmoeConfig, SMALL | dict(num_experts=6, num_experts_per_tok=3)),
    "gpt_oss": (GptOssForCausalLM, GptOssConfig, GPT_OSS),
    "gpt_oss, low limit": (GptOssForCausalLM, GptOssConfig, GPT_OSS | dict(swiglu_limit=0.7)),
}


@cache
def tokenizer() -> Tokenizer:
    """Return a byte-level tokenizer of a few words."""
    words = ["the", " cat", " sat", "今天", "天气", " weather", " today", "\n"] * 3
    return Tokenizer.train(words, vocab_size=300)


def reference(case: str) -> torch.nn.Module:
    """Return transformers' model of a case, none of whose weights is 0 or 1 by default."""
    made, config, values = CASES[case]
    torch.manual_seed(5)
    model = made._from_config(config(vocab_size=tokenizer().vocab_size, **values), attn_implementation="eager").eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(("bias", "sinks")) or "norm" in name or ".ln_" in name:
                parameter.add_(torch.randn(parameter.shape) * 0.1)
    return model


def write_folder(case: str, folder: Path, **options: object) -> torch.nn.Module:
    """Write a case as Hugging Face does, with the tokenizer beside it; return transformers' model."""
    model = reference(case)
    model.save_pretrained(folder, **options)
    tokenizer().save(folder / "tokenizer.json")
    return model
