"""Tiny random models of every family, as transformers makes them, and folders and GGUF files with them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import gguf
import numpy as np
import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
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
CASES = {
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
            if name.endswith("bias") or "norm" in name or ".ln_" in name:
                parameter.add_(torch.randn(parameter.shape) * 0.1)
    return model


def write_folder(case: str, folder: Path, **options: object) -> torch.nn.Module:
    """Write a case as Hugging Face does, with the tokenizer beside it; return transformers' model."""
    model = reference(case)
    model.save_pretrained(folder, **options)
    tokenizer().save(folder / "tokenizer.json")
    return model


# ---- GGUF, after the rules of llama.cpp's converter ----

_LLAMA_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_GEMMA_NAMES = _LLAMA_NAMES | {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
_GPT2_NAMES = {
    "ln_1": "attn_norm",
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "ln_2": "ffn_norm",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
}
_TOP = {
    "wte": "token_embd",
    "wpe": "position_embd",
    "ln_f": "output_norm",
    "embed_tokens": "token_embd",
    "norm": "output_norm",
    "lm_head": "output",
}


def interleave(rows: np.ndarray, n_heads: int) -> np.ndarray:
    """Reorder the rows of each head from halves (a0 a1 .. b0 b1 ..) to pairs (a0 b0 a1 b1 ..)."""
    halves = rows.reshape(n_heads, 2, -1, *rows.shape[1:])
    return halves.swapaxes(1, 2).reshape(rows.shape)


def write_gguf(case: str, path: Path, quantized: gguf.GGMLQuantizationType | None = None) -> torch.nn.Module:
    """Write a case as a GGUF file; return transformers' model."""
    model, config = reference(case), reference(case).config
    kind = config.model_type.removesuffix("_text")
    writer = gguf.GGUFWriter(path, kind)
    if kind == "gpt2":
        writer.add_context_length(config.n_positions)
        writer.add_embedding_length(config.n_embd)
        writer.add_block_count(config.n_layer)
        writer.add_feed_forward_length(4 * config.n_embd)
        writer.add_head_count(config.n_head)
        writer.add_layer_norm_eps(config.layer_norm_epsilon)
    else:
        writer.add_context_length(config.max_position_embeddings)
        writer.add_embedding_length(config.hidden_size)
        writer.add_block_count(config.num_hidden_layers)
        writer.add_feed_forward_length(config.intermediate_size)
        writer.add_head_count(config.num_attention_heads)
        writer.add_head_count_kv(config.num_key_value_heads)
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
        rope = config.rope_parameters.get("full_attention", config.rope_parameters)
        writer.add_rope_freq_base(rope["rope_theta"])
        d_head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        writer.add_key_length(d_head)
        writer.add_value_length(d_head)
        if rope["rope_type"] == "linear":
            writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
            writer.add_rope_scaling_factor(rope["factor"])
        if rope["rope_type"] == "yarn":
            writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
            writer.add_rope_scaling_factor(rope["factor"])
            writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        if rope["rope_type"] == "llama3":
            own = torch.tensor(rope["rope_theta"]) ** -(torch.arange(0, d_head, 2) / d_head)
            writer.add_tensor("rope_freqs.weight", (own / model.model.rotary_emb.inv_freq).numpy())
        if kind == "gemma3":
            writer.add_sliding_window(config.sliding_window)
    _add_tokenizer(writer)
    tied = config.tie_word_embeddings
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and tied:
            continue
        ours, numbers = _converted(
            name.removeprefix("model.").removeprefix("transformer."), tensor.numpy(), kind, config
        )
        if quantized is not None and numbers.ndim == 2 and numbers.shape[1] % gguf.GGML_QUANT_SIZES[quantized][0] == 0:
            writer.add_tensor(ours, gguf.quants.quantize(numbers, quantized), raw_dtype=quantized)
        else:
            writer.add_tensor(ours, np.ascontiguousarray(numbers))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model


def _converted(name: str, numbers: np.ndarray, kind: str, config: object) -> tuple[str, np.ndarray]:
    stem, _, ending = name.rpartition(".")
    if stem in _TOP:
        if kind == "gemma3" and stem == "norm":
            numbers = numbers + 1
        return f"{_TOP[stem]}.{ending}", numbers
    _, block, part = stem.split(".", 2)
    names = {"gpt2": _GPT2_NAMES, "gemma3": _GEMMA_NAMES}.get(kind, _LLAMA_NAMES)
    if kind == "gpt2" and numbers.ndim == 2:
        numbers = numbers.T
    if kind == "gemma3" and part.endswith("norm"):
        numbers = numbers + 1
    if kind == "llama" and part in ("self_attn.q_proj", "self_attn.k_proj"):
        heads = config.num_attention_heads if part.endswith("q_proj") else config.num_key_value_heads
        numbers = interleave(numbers, heads)
    return f"blk.{block}.{names[part]}.{ending}", numbers


def _add_tokenizer(writer: gguf.GGUFWriter) -> None:
    library = tokenizer()._as_text
    written = sorted(library.get_vocab(with_added_tokens=True).items(), key=lambda item: item[1])
    special = tokenizer().special_tokens
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([token for token, _ in written])
    writer.add_token_types([3 if token in special else 1 for token, _ in written])
    known = dict(written)
    merges = []
    for left, right in tokenizer().merges:
        merges.append(f"{_written(known, tokenizer(), left)} {_written(known, tokenizer(), right)}")
    writer.add_token_merges(merges)


def _written(known: dict[str, int], made: Tokenizer, token: bytes) -> str:
    return next(text for text, token_id in known.items() if made.token_bytes(token_id) == token)
