"""The tiny models of every family as GGUF files, after the rules of llama.cpp's converter."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch

from lmcore.tokenizer import Tokenizer
from tests.lmcore.checkpoints.tiny import reference, tokenizer

_BLOCK = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "self_attn.sinks": "attn_sinks",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.gate": "ffn_gate_inp",
    "mlp.router": "ffn_gate_inp",
    "mlp.experts.down_proj": "ffn_down_exps",
    "shared_mlp.output_linear": "ffn_down",
}
_FOUR_NORMS = _BLOCK | {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
_NAMES = {
    "gpt2": {
        "ln_1": "attn_norm",
        "attn.c_attn": "attn_qkv",
        "attn.c_proj": "attn_output",
        "ln_2": "ffn_norm",
        "mlp.c_fc": "ffn_up",
        "mlp.c_proj": "ffn_down",
    },
    "gptneox": {
        "input_layernorm": "attn_norm",
        "attention.query_key_value": "attn_qkv",
        "attention.dense": "attn_output",
        "post_attention_layernorm": "ffn_norm",
        "mlp.dense_h_to_4h": "ffn_up",
        "mlp.dense_4h_to_h": "ffn_down",
    },
    "gemma2": _FOUR_NORMS,
    "gemma3": _FOUR_NORMS,
    "olmo2": _FOUR_NORMS,
    "gpt-oss": _BLOCK | {"post_attention_layernorm": "post_attention_norm"},
}
_TOP = {
    "wte": "token_embd",
    "wpe": "position_embd",
    "ln_f": "output_norm",
    "embed_in": "token_embd",
    "final_layer_norm": "output_norm",
    "embed_out": "output",
    "embed_tokens": "token_embd",
    "norm": "output_norm",
    "lm_head": "output",
}
_ARCHITECTURES = {
    "gemma3_text": "gemma3",
    "gpt_neox": "gptneox",
    "gpt_oss": "gpt-oss",
    "granitemoehybrid": "granite",
    "mistral": "llama",
    "mixtral": "llama",
    "qwen3_moe": "qwen3moe",
}
_TURNED_IN_PAIRS = ("llama", "granite", "smollm3")


def interleave(rows: np.ndarray, n_heads: int) -> np.ndarray:
    """Reorder the rows of each head from halves (a0 a1 .. b0 b1 ..) to pairs (a0 b0 a1 b1 ..)."""
    halves = rows.reshape(n_heads, 2, -1, *rows.shape[1:])
    return halves.swapaxes(1, 2).reshape(rows.shape)


def write_gguf(
    case: str, path: Path, quantized: gguf.GGMLQuantizationType | None = None, experts_apart: bool = False
) -> torch.nn.Module:
    """Write a case as a GGUF file, each expert's matrix by itself where asked; return transformers' model."""
    model = reference(case)
    config = model.config
    kind = _ARCHITECTURES.get(config.model_type, config.model_type)
    writer = gguf.GGUFWriter(path, kind)
    if kind == "gpt2":
        writer.add_context_length(config.n_positions)
        writer.add_embedding_length(config.n_embd)
        writer.add_block_count(config.n_layer)
        writer.add_feed_forward_length(4 * config.n_embd)
        writer.add_head_count(config.n_head)
        writer.add_layer_norm_eps(config.layer_norm_epsilon)
    else:
        _add_fields(writer, kind, model)
    _add_tokenizer(writer)
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        bare = re.sub(r"^(model|transformer|gpt_neox)\.", "", name)
        for ours, numbers in _converted(bare, tensor.numpy(), kind, config):
            if experts_apart and "_exps." in ours:  # as Mixtral's first files
                for number, expert in enumerate(numbers):
                    writer.add_tensor(ours.replace("_exps.", f".{number}."), np.ascontiguousarray(expert))
                continue
            fits = quantized is not None and numbers.shape[-1] % gguf.GGML_QUANT_SIZES[quantized][0] == 0
            if fits and numbers.ndim == 2:
                writer.add_tensor(ours, gguf.quants.quantize(numbers, quantized), raw_dtype=quantized)
            else:
                writer.add_tensor(ours, np.ascontiguousarray(numbers))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model


def _add_fields(writer: gguf.GGUFWriter, kind: str, model: torch.nn.Module) -> None:
    config = model.config
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    d_head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    if kind in ("gptneox", "stablelm"):
        writer.add_layer_norm_eps(config.layer_norm_eps)
        # Of StableLM the files with two norms in a block say True too: converters do where the config is silent.
        writer.add_parallel_residual(config.use_parallel_residual or kind == "stablelm")
    if kind == "stablelm":
        writer.add_head_count_kv(config.num_key_value_heads)
    elif config.model_type == "granitemoehybrid":
        _add_unused_fields(writer, config)
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    elif kind != "gptneox":
        writer.add_head_count_kv(config.num_key_value_heads)
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
        writer.add_key_length(d_head)
        writer.add_value_length(d_head)
    _add_rope(writer, kind, model, d_head)
    if kind in ("gemma2", "gemma3", "phi3", "gpt-oss") and config.sliding_window:  # not of Mistral
        writer.add_sliding_window(config.sliding_window)
    if kind == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
    if kind == "granite":
        writer.add_attention_scale(config.attention_multiplier)
        writer.add_embedding_scale(config.embedding_multiplier)
        writer.add_residual_scale(config.residual_multiplier)
        writer.add_logit_scale(config.logits_scaling)
    if n_experts := getattr(config, "num_local_experts", None):
        writer.add_expert_count(n_experts)
        writer.add_expert_used_count(config.num_experts_per_tok)
        if kind in ("qwen3moe", "gpt-oss"):
            width = config.moe_intermediate_size if kind == "qwen3moe" else config.intermediate_size
            writer.add_expert_feed_forward_length(width)


def _add_unused_fields(writer: gguf.GGUFWriter, config: Any) -> None:
    """Write what llama.cpp's converter writes of Granite 4 also where no block has Mamba."""
    writer.add_expert_shared_feed_forward_length(config.shared_intermediate_size)
    writer.add_ssm_conv_kernel(config.mamba_d_conv)
    writer.add_ssm_state_size(config.mamba_d_state)
    writer.add_ssm_group_count(config.mamba_n_groups)
    writer.add_ssm_inner_size(config.mamba_expand * config.hidden_size)
    writer.add_ssm_time_step_rank(config.mamba_n_heads)
    writer.add_head_count_kv([config.num_key_value_heads] * config.num_hidden_layers)
    writer.add_rope_scaling_finetuned(True)


def _add_rope(writer: gguf.GGUFWriter, kind: str, model: torch.nn.Module, d_head: int) -> None:
    config = model.config
    rope = config.rope_parameters.get("full_attention", config.rope_parameters)
    writer.add_rope_freq_base(rope["rope_theta"])
    share = rope.get("partial_rotary_factor", 1.0)
    writer.add_rope_dimension_count(int(d_head * share))
    if rope["rope_type"] in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(rope["rope_type"]))
        writer.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] == "yarn":
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if rope["rope_type"] == "llama3":
        own = torch.tensor(rope["rope_theta"]) ** -(torch.arange(0, d_head, 2) / d_head)
        writer.add_tensor("rope_freqs.weight", (own / model.model.rotary_emb.inv_freq).numpy())
    if rope["rope_type"] == "longrope":
        original = config.original_max_position_embeddings
        grown = config.max_position_embeddings / original
        writer.add_rope_scaling_orig_ctx_len(original)
        writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(grown) / math.log(original)))
        for which in ("short", "long"):
            factors = np.array(rope[f"{which}_factor"], np.float32)
            writer.add_tensor(f"rope_factors_{which}.weight", factors)


def _converted(name: str, numbers: np.ndarray, kind: str, config: Any) -> list[tuple[str, np.ndarray]]:
    if kind == "gpt-oss" and name.endswith(("sinks", "_proj", "_proj_bias")):
        name = re.sub(r"_bias$", ".bias", name) if name.endswith("_bias") else f"{name}.weight"
        if ".experts." in name and name.endswith(".weight"):
            numbers = numbers.swapaxes(-1, -2)
        if ".experts.gate_up_proj." in name:
            block, ending = name.split(".")[1], name.rpartition(".")[2]
            turns = [numbers[:, start::2] for start in (0, 1)]  # the rows of gate and up lie in turn
            return [
                (f"blk.{block}.ffn_{part}_exps.{ending}", each)
                for part, each in zip(("gate", "up"), turns, strict=True)
            ]
    elif name.endswith(("experts.gate_up_proj", "experts.down_proj")):  # [expert, out, in]
        block = name.split(".")[1]
        if name.endswith("down_proj"):
            return [(f"blk.{block}.ffn_down_exps.weight", numbers)]
        gate, up = np.split(numbers, 2, axis=1)
        return [(f"blk.{block}.ffn_gate_exps.weight", gate), (f"blk.{block}.ffn_up_exps.weight", up)]
    stem, _, ending = name.rpartition(".")
    if kind in ("gemma2", "gemma3") and stem.endswith("norm"):
        numbers = numbers + 1
    if stem.endswith("shared_mlp.input_linear"):
        block, halves = name.split(".")[1], np.split(numbers, 2)
        return [(f"blk.{block}.ffn_{part}.weight", half) for part, half in zip(("gate", "up"), halves, strict=True)]
    if stem in _TOP:
        return [(f"{_TOP[stem]}.{ending}", numbers)]
    _, block, part = stem.split(".", 2)
    if kind == "gpt2" and numbers.ndim == 2:
        numbers = numbers.T
    if kind in _TURNED_IN_PAIRS and part in ("self_attn.q_proj", "self_attn.k_proj"):
        heads = config.num_attention_heads if part.endswith("q_proj") else config.num_key_value_heads
        numbers = interleave(numbers, heads)
    if part == "attention.query_key_value":  # q, k and v of each head together
        by_head = numbers.reshape(config.num_attention_heads, 3, -1, *numbers.shape[1:])
        numbers = by_head.swapaxes(0, 1).reshape(numbers.shape)
    return [(f"blk.{block}.{_NAMES.get(kind, _BLOCK)[part]}.{ending}", numbers)]


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
