"""GGUF architectures: metadata there -> config here, and where each of our tensors lies.

Files of different families share their tensor names. LLaMA's files store the rows of q and k in the
order in which RoPE turns neighbouring components (2i, 2i + 1); they are read in the order of Hugging
Face's files, as the others are stored, whose pairs lie half a head apart. Gemma's files store
1 + weight for every norm.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import torch
from gguf.constants import Keys

from lmcore.checkpoints.fields import Fields
from lmcore.checkpoints.gemma3 import local_blocks
from lmcore.checkpoints.names import Names, Place, Renamed
from lmcore.checkpoints.tensor_source import TensorSource
from lmcore.config import ModelConfig, RopeScaling
from lmcore.position import rope_frequencies

_FACTORS = "rope_freqs.weight"
_HARMLESS = ("tensor_data_layout", "rope.scaling.finetuned", "expert_weights_scale", "expert_weights_norm")
_ASKING_NOTHING: Mapping[str, tuple[Any, ...]] = {
    "logit_scale": (0, 1),
    "residual_scale": (0, 1),
    "embedding_scale": (0, 1),
    "rope.scaling.attn_factor": (0, 1),
    "rope.scaling.yarn_attn_factor": (0, 1),
    "rope.scaling.yarn_ext_factor": (-1, 1),
}
_MEANINGS = {
    name: _ASKING_NOTHING.get(name, (0, "", []))
    for group in (Keys.LLM, Keys.Attention, Keys.Rope, Keys.SSM, Keys.WKV)
    for name in (str(key).removeprefix("{arch}.") for key in vars(group).values())
}
"""Every field that the format defines for a model changes the numbers, except with these values."""

_TOP = {"token_embedding": "token_embd", "position": "position_embd", "final_norm": "output_norm", "head": "output"}
_BLOCK: dict[str, str | Place] = {
    "attn_norm": "attn_norm",
    "attn.q": "attn_q",
    "attn.k": "attn_k",
    "attn.v": "attn_v",
    "attn.q_norm": "attn_q_norm",
    "attn.k_norm": "attn_k_norm",
    "attn.out": "attn_output",
    "attn_post_norm": "post_attention_norm",
    "mlp_norm": "ffn_norm",
    "mlp.gate": "ffn_gate",
    "mlp.up": "ffn_up",
    "mlp.down": "ffn_down",
    "mlp_post_norm": "post_ffw_norm",
}
_INTERLEAVED = {f"attn.{part}": Place(f"attn_{part}", interleaved=True) for part in "qk"}
_FUSED = {f"attn.{part}": Place("attn_qkv", third=third) for third, part in enumerate("qkv")}


def read_model(metadata: Mapping[str, Any], source: TensorSource) -> tuple[ModelConfig, TensorSource, dict[str, Any]]:
    """Return the config of a GGUF file, its tensors under our names, and the fields that nobody knows.

    Raises:
        ValueError: for an architecture or field that is not understood, naming the file and it.
    """
    architecture = metadata.get("general.architecture")
    if architecture not in _ARCHITECTURES:
        raise ValueError(
            f"{source.filename}: general.architecture = {architecture!r} is not supported; "
            f"{', '.join(_ARCHITECTURES)} are."
        )
    prefix = f"{architecture}."
    values = {key.removeprefix(prefix): value for key, value in metadata.items() if key.startswith(prefix)}
    fields = Fields(values, _MEANINGS, _HARMLESS)
    try:
        config = _ARCHITECTURES[architecture](fields, metadata, source)
        unknown = fields.finish()
    except ValueError as error:
        raise ValueError(f"{source.filename}: {prefix}{error}") from None
    names = Names(
        top=_TOP,
        block=_BLOCK | {"gpt2": _FUSED, "llama": _INTERLEAVED}.get(architecture, {}),
        block_prefix="blk.{i}.",
        ignored=re.escape(_FACTORS) if config.rope_scaling is not None else r"(?!)",
    )
    return config, Renamed(source, names, config), unknown


def _sizes(fields: Fields, metadata: Mapping[str, Any], source: TensorSource) -> dict[str, Any]:
    """Read what every architecture names alike, as fields of `ModelConfig`."""
    shapes = source.shapes()
    fields.require("attention.causal", True)
    d_head = fields.optional_whole("attention.key_length")
    if (value_length := fields.optional_whole("attention.value_length")) not in (None, d_head):
        raise ValueError(f"attention.value_length = {value_length} differs from key_length = {d_head}.")
    rows = shapes.get("token_embd.weight", (0,))[0]
    vocab_size = fields.whole("vocab_size", len(metadata.get("tokenizer.ggml.tokens") or ()) or rows or None)
    return {
        "vocab_size": vocab_size,
        "d_model": fields.whole("embedding_length"),
        "n_layers": fields.whole("block_count"),
        "n_heads": fields.whole("attention.head_count"),
        "n_kv_heads": fields.optional_whole("attention.head_count_kv"),
        "d_head": d_head,
        "d_mlp": fields.whole("feed_forward_length"),
        "context_length": fields.whole("context_length"),
        "tie_embeddings": "output.weight" not in shapes,
        "attention_bias": "blk.0.attn_q.bias" in shapes or "blk.0.attn_qkv.bias" in shapes,
        "attention_out_bias": "blk.0.attn_output.bias" in shapes,
        "mlp_bias": "blk.0.ffn_up.bias" in shapes,
    }


def _rotated(
    fields: Fields, metadata: Mapping[str, Any], source: TensorSource, base: float = 10_000.0
) -> dict[str, Any]:
    """Read the sizes, the norm and RoPE of the architectures after GPT-2."""
    sized = _sizes(fields, metadata, source)
    d_head = sized["d_head"] or sized["d_model"] // sized["n_heads"]
    if (turned := fields.whole("rope.dimension_count", d_head)) != d_head:
        raise ValueError(f"rope.dimension_count = {turned} is not supported; it must be the head's {d_head}.")
    scaling, sharper = _scaling(fields, sized["context_length"])
    base = fields.real("rope.freq_base", base)
    if _FACTORS in source.shapes():
        if scaling is not None:
            raise ValueError(f"rope.scaling.type = {scaling.kind!r} beside {_FACTORS} is not supported.")
        scaling = _llama3_scaling(source, d_head, base)
    return sized | {
        "norm_eps": fields.real("attention.layer_norm_rms_epsilon"),
        "rope_base": base,
        "rope_scaling": scaling,
        "attention_scale": None if sharper == 1 else sharper**2 / math.sqrt(d_head),
    }


def _scaling(fields: Fields, context_length: int) -> tuple[RopeScaling | None, float]:
    """Read RoPE's scaling, and what YaRN multiplies queries and keys by; a factor without a type is linear."""
    kind = fields.get("rope.scaling.type", "linear")
    factor = fields.get("rope.scaling.factor", fields.get("rope.scale_linear")) or 1.0  # 0 asks for nothing
    original = fields.whole("rope.scaling.original_context_length", context_length)
    if kind == "none" or (kind == "linear" and factor == 1):
        return None, 1.0
    if kind == "linear":
        return RopeScaling(kind="linear", factor=factor), 1.0
    if kind != "yarn":
        raise ValueError(f"rope.scaling.type = {kind!r} is not supported; it must be 'none', 'linear' or 'yarn'.")
    scaling = RopeScaling(
        kind="yarn",
        factor=factor,
        low_frequency_factor=fields.real("rope.scaling.yarn_beta_slow", 1.0),
        high_frequency_factor=fields.real("rope.scaling.yarn_beta_fast", 32.0),
        original_context_length=original,
    )
    return scaling, scaling.attention_factor


def _llama3_scaling(source: TensorSource, d_head: int, base: float) -> RopeScaling:
    """Recognise LLaMA 3.1's scaling, which a file holds as the factor each frequency is divided by."""
    factors = source.read(_FACTORS, torch.float64)
    scaling = RopeScaling(kind="llama3", factor=max(float(factors.max()), 1.0))
    expected = rope_frequencies(d_head, base) / rope_frequencies(d_head, base, scaling)
    if factors.shape != expected.shape or not torch.allclose(factors, expected, rtol=1e-4):
        raise ValueError(f"{_FACTORS} holds factors that are not those of LLaMA 3.1's scaling.")
    return scaling


def _gpt2(fields: Fields, metadata: Mapping[str, Any], source: TensorSource) -> ModelConfig:
    return ModelConfig(
        **_sizes(fields, metadata, source),
        norm="layernorm",
        norm_eps=fields.real("attention.layer_norm_epsilon"),
        norm_bias=True,
        activation="gelu_tanh",
        gated_mlp=False,
        position_encoding="learned",
    )


def _llama(fields: Fields, metadata: Mapping[str, Any], source: TensorSource) -> ModelConfig:
    return ModelConfig(**_rotated(fields, metadata, source))


def _qwen2(fields: Fields, metadata: Mapping[str, Any], source: TensorSource) -> ModelConfig:
    return ModelConfig(**_rotated(fields, metadata, source))


def _qwen3(fields: Fields, metadata: Mapping[str, Any], source: TensorSource) -> ModelConfig:
    return ModelConfig(**_rotated(fields, metadata, source), qk_norm=True)


def _gemma3(fields: Fields, metadata: Mapping[str, Any], source: TensorSource) -> ModelConfig:
    rotated = _rotated(fields, metadata, source, base=1_000_000.0)
    n_layers, d_head = rotated["n_layers"], rotated["d_head"] or 256
    # The 27-billion model alone scales scores by d_model / n_heads; files do not say so (Gemma 3 report, table 1).
    if rotated["attention_scale"] is not None:
        raise ValueError("rope.scaling.type = 'yarn' would sharpen some blocks only; it is not supported.")
    per_head = rotated["d_model"] / rotated["n_heads"] if n_layers == 62 else d_head
    return ModelConfig(
        **rotated | {"d_head": d_head, "attention_scale": per_head**-0.5},
        rope_base_local=fields.real("rope.freq_base_swa", 10_000.0),
        sliding_window=fields.whole("attention.sliding_window"),
        local_layers=local_blocks(n_layers, fields.whole("attention.sliding_window_pattern", 6)),
        logit_softcap=fields.get("final_logit_softcapping"),
        activation="gelu_tanh",
        qk_norm=True,
        sandwich_norm=True,
        embedding_scale=math.sqrt(rotated["d_model"]),
    )


_ARCHITECTURES: dict[str, Callable[[Fields, Mapping[str, Any], TensorSource], ModelConfig]] = {
    "gpt2": _gpt2,
    "llama": _llama,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "gemma3": _gemma3,
}
