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

from lmcore.checkpoints.fields import Fields
from lmcore.checkpoints.gemma3 import local_blocks
from lmcore.checkpoints.names import Names, Place, Renamed
from lmcore.checkpoints.tensor_source import TensorSource
from lmcore.config import ModelConfig, RopeScaling
from lmcore.position import rope_frequencies

_FACTORS = "rope_freqs.weight"

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


def read_model(metadata: Mapping[str, Any], source: TensorSource) -> tuple[ModelConfig, TensorSource]:
    """Return the config of a GGUF file and its tensors under our names.

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
    fields = Fields({key.removeprefix(prefix): value for key, value in metadata.items() if key.startswith(prefix)})
    try:
        config = _ARCHITECTURES[architecture](fields, metadata, source)
        fields.finish()
    except ValueError as error:
        raise ValueError(f"{source.filename}: {prefix}{error}") from None
    names = Names(
        top=_TOP,
        block=_BLOCK | {"gpt2": _FUSED, "llama": _INTERLEAVED}.get(architecture, {}),
        block_prefix="blk.{i}.",
        ignored=re.escape(_FACTORS) if config.rope_scaling is not None else r"(?!)",
    )
    return config, Renamed(source, names, config)


def _sizes(fields: Fields, metadata: Mapping[str, Any], source: TensorSource) -> dict[str, Any]:
    """Read what every architecture names alike, as fields of `ModelConfig`."""
    shapes = source.shapes()
    for key in ("attention.causal", "rope.scaling.finetuned"):
        fields.get(key)
    if fields.get("attention.causal", True) is not True:
        raise ValueError("attention.causal = False is not supported.")
    for key in ("expert_count", "expert_used_count"):
        fields.require(key, 0)
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
    kind = fields.get("rope.scaling.type", "none")
    scaling = None
    if kind == "linear":
        scaling = RopeScaling(kind="linear", factor=fields.real("rope.scaling.factor"))
    elif kind != "none":
        raise ValueError(f"rope.scaling.type = {kind!r} is not supported; it must be 'none' or 'linear'.")
    fields.get("rope.scaling.original_context_length")  # where the scaling was trained from: linear does not ask
    base = fields.real("rope.freq_base", base)
    if _FACTORS in source.shapes():
        scaling = _llama3_scaling(source, d_head, base)
    return sized | {
        "norm_eps": fields.real("attention.layer_norm_rms_epsilon"),
        "rope_base": base,
        "rope_scaling": scaling,
    }


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
    per_head = rotated["d_model"] / rotated["n_heads"] if n_layers == 62 else d_head
    return ModelConfig(
        **rotated | {"d_head": d_head},
        rope_base_local=fields.real("rope.freq_base_swa", 10_000.0),
        sliding_window=fields.whole("attention.sliding_window"),
        local_layers=local_blocks(n_layers, fields.whole("attention.sliding_window_pattern", 6)),
        attention_scale=per_head**-0.5,
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
