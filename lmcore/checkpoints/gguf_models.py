"""GGUF architectures: metadata there -> config here, and where each of our tensors lies.

Files of different families share the names of fields and tensors, and which tensors there are says much of the config;
an architecture's declaration says the rest. LLaMA's files store the rows of q and k in the order in which RoPE turns
neighbouring components (2i, 2i + 1), and so do those of its nearest relatives; they are read in the order of Hugging
Face's files, as the others are stored, whose pairs lie half a head apart. Gemma's store 1 + weight for a norm.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from gguf.constants import Keys

from lmcore.checkpoints.families.gemma import local_blocks
from lmcore.checkpoints.fields import MOST_LAYERS, Fields
from lmcore.checkpoints.names import Names, Renamed, TensorLocation
from lmcore.checkpoints.tensor_source import TensorSource
from lmcore.config import ModelConfig, RopeScaling
from lmcore.position import rope_frequencies

_FACTORS, _SHORT, _LONG = "rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight"
_HARMLESS = ("tensor_data_layout", "rope.scaling.finetuned", "expert_weights_scale", "expert_weights_norm")
"""Fields that change nothing, but in the families whose rules read them."""
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
_BLOCK: dict[str, str | TensorLocation] = {
    "attn_norm": "attn_norm",
    "attn.q": "attn_q",
    "attn.k": "attn_k",
    "attn.v": "attn_v",
    "attn.q_norm": "attn_q_norm",
    "attn.k_norm": "attn_k_norm",
    "attn.out": "attn_output",
    "mlp_norm": "ffn_norm",
    "attn.sinks": TensorLocation("attn_sinks", bare=True),
    "mlp.gate": "ffn_gate",
    "mlp.up": "ffn_up",
    "mlp.down": "ffn_down",
}
_EXPERTS: dict[str, str | TensorLocation] = {
    "mlp.router": "ffn_gate_inp",
    **{f"mlp.{part}": TensorLocation(f"ffn_{part}_exps", or_=f"ffn_{part}.{{e}}") for part in ("gate", "up", "down")},
}
"""Mixtral's first files have a tensor for each expert."""
_SANDWICH = {"attn_post_norm": "post_attention_norm", "mlp_post_norm": "post_ffw_norm"}
_NEIGHBOURS = {f"attn.{part}": TensorLocation(f"attn_{part}", interleaved=True) for part in "qk"}
_FUSED_QKV = {f"attn.{part}": TensorLocation("attn_qkv", part=part, of=("q", "k", "v")) for part in "qkv"}
_FUSED_MLP = {f"mlp.{part}": TensorLocation("ffn_up", part=part, of=("gate", "up")) for part in ("gate", "up")}

Rule = Callable[[Fields, Mapping[str, Any]], dict[str, Any]]
"""Reads fields of `ModelConfig` that an architecture says in its own way, given what was read before."""


@dataclass(frozen=True)
class Architecture:
    """What the files of an architecture do not say.

    Attributes:
        block: where tensors of a block lie that lie elsewhere than in most files.
        always: fields of `ModelConfig`.
        rules: what the file says in the architecture's own way.
        rope_base: RoPE's base where the file does not say.
        window_pattern: every so many-th block sees everything where the file has a sliding window; 0 for none.
    """

    block: Mapping[str, str | TensorLocation] = field(default_factory=dict)
    always: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    rope_base: float = 10_000.0
    window_pattern: int = 0


def read_model(metadata: Mapping[str, Any], source: TensorSource) -> tuple[ModelConfig, TensorSource, dict[str, Any]]:
    """Return the config of a GGUF file, its tensors under our names, and the fields that nobody knows.

    Raises:
        ValueError: for an architecture or field that is not understood, naming the file and it.
    """
    name = metadata.get("general.architecture")
    if not isinstance(name, str) or name not in ARCHITECTURES:
        raise ValueError(
            f"{source.filename}: general.architecture = {name!r} is not supported; {', '.join(ARCHITECTURES)} are."
        )
    architecture, prefix = ARCHITECTURES[name], f"{name}."
    values = {key.removeprefix(prefix): value for key, value in metadata.items() if key.startswith(prefix)}
    fields = Fields(values, _MEANINGS, _HARMLESS)
    try:
        read = _sizes(fields, metadata, source)
        if "position_embd.weight" not in source.shapes():
            read |= _rope(fields, source, read, architecture.rope_base)
        if read.get("rope_dims") is not None and architecture.block is _NEIGHBOURS:
            raise ValueError(
                f"rope.dimension_count = {read['rope_dims']} is not supported; it must be the head's size."
            )
        read |= _layers(fields, read, architecture.window_pattern)
        for rule in architecture.rules:
            read |= rule(fields, read)
        config = ModelConfig(**read | dict(architecture.always))
        unknown = fields.finish()
    except (ValueError, TypeError, ArithmeticError) as error:
        raise ValueError(f"{source.filename}: {prefix}{error}") from None
    factors = config.rope_scaling is not None and config.rope_scaling.kind in ("llama3", "longrope")
    names = Names(
        top=_TOP,
        block={
            **_BLOCK,
            **(_SANDWICH if config.sandwich_norm else {}),
            **(_EXPERTS if config.n_experts else {}),
            **architecture.block,
        },
        block_prefix="blk.{i}.",
        ignored="|".join(map(re.escape, (_FACTORS, _SHORT, _LONG))) if factors else r"(?!)",
    )
    return config, Renamed(source, names, config), unknown


def _sizes(fields: Fields, metadata: Mapping[str, Any], source: TensorSource) -> dict[str, Any]:
    """Read what every architecture says alike, and what follows from the tensors, as fields of `ModelConfig`."""
    shapes = source.shapes()
    fields.require("attention.causal", True)
    n_heads, d_model = fields.whole("attention.head_count"), fields.whole("embedding_length")
    d_head = fields.optional_whole("attention.key_length")
    if (value_length := fields.optional_whole("attention.value_length")) not in (None, d_head):
        raise ValueError(f"attention.value_length = {value_length} differs from key_length = {d_head}.")
    rows = shapes.get("token_embd.weight", (0,))[0]
    vocab_size = fields.whole("vocab_size", len(metadata.get("tokenizer.ggml.tokens") or ()) or rows or None)
    layer_norm = fields.get("attention.layer_norm_rms_epsilon") is None
    n_experts = fields.get("expert_count") or None
    d_mlp = fields.optional_whole("expert_feed_forward_length") if n_experts else None
    d_mlp = d_mlp or fields.whole("feed_forward_length")
    fields.get("feed_forward_length")
    q_norm = shapes.get("blk.0.attn_q_norm.weight")
    return {
        "vocab_size": vocab_size,
        "d_model": d_model,
        "n_layers": fields.whole("block_count", most=MOST_LAYERS),
        "n_heads": n_heads,
        "n_kv_heads": _same_in_all_blocks(fields, "attention.head_count_kv"),
        "d_head": d_head,
        "d_mlp": d_mlp,
        "context_length": fields.whole("context_length"),
        "norm": "layernorm" if layer_norm else "rmsnorm",
        "norm_eps": fields.real("attention.layer_norm_epsilon" if layer_norm else "attention.layer_norm_rms_epsilon"),
        "norm_bias": "output_norm.bias" in shapes,
        "pre_norm": "blk.0.attn_norm.weight" in shapes,
        "sandwich_norm": "blk.0.post_ffw_norm.weight" in shapes,
        "qk_norm": q_norm is not None,
        "qk_norm_over": "all_heads" if q_norm not in (None, (d_head or d_model // n_heads,)) else "head",
        "tie_embeddings": "output.weight" not in shapes,
        "attention_bias": "blk.0.attn_q.bias" in shapes or "blk.0.attn_qkv.bias" in shapes,
        "attention_out_bias": "blk.0.attn_output.bias" in shapes,
        "attention_sinks": "blk.0.attn_sinks.weight" in shapes,
        "mlp_bias": "blk.0.ffn_up.bias" in shapes or "blk.0.ffn_up_exps.bias" in shapes,
        "router_bias": "blk.0.ffn_gate_inp.bias" in shapes,
        "n_experts": n_experts,
        "n_experts_used": fields.whole("expert_used_count") if n_experts else None,
        "position_encoding": "learned" if "position_embd.weight" in shapes else "rope",
    }


def _same_in_all_blocks(fields: Fields, name: str) -> int | None:
    """Read a number that some files give for each block."""
    given = fields.get(name)
    if not isinstance(given, list):
        return fields.optional_whole(name)
    if not given or any(each != given[0] for each in given):
        raise ValueError(f"{name} = {given!r:.80} must be the same in every block; others are not supported.")
    return Fields({name: given[0]}).whole(name)


def _layers(fields: Fields, read: Mapping[str, Any], pattern: int) -> dict[str, Any]:
    """Read the blocks with a sliding window: all, or all but every `pattern`-th."""
    window = fields.get("attention.sliding_window") or None
    if window is None:
        fields.get("attention.sliding_window_pattern")
        return {}
    pattern = fields.whole("attention.sliding_window_pattern", pattern) if pattern else read["n_layers"] + 1
    return {"sliding_window": fields.whole("attention.sliding_window")} | {
        "local_layers": local_blocks(read["n_layers"], pattern)
    }


def _rope(fields: Fields, source: TensorSource, read: Mapping[str, Any], base: float) -> dict[str, Any]:
    d_head = read["d_head"] or read["d_model"] // read["n_heads"]
    turned = fields.whole("rope.dimension_count", d_head)
    scaling = _scaling(fields, read["context_length"])
    base = fields.real("rope.freq_base", base)
    for name, factors_of in ((_FACTORS, _llama3_scaling), (_LONG, _longrope)):
        if name in source.shapes():
            if scaling is not None:
                raise ValueError(f"rope.scaling.type = {scaling.kind!r} beside {name} is not supported.")
            if (shape := source.shapes()[name]) != (turned // 2,):
                raise ValueError(f"{name} has the shape {list(shape)}; RoPE turns {turned // 2} pairs of each head.")
            scaling = factors_of(fields, source, read, rope_frequencies(turned, base))
    return {"rope_base": base, "rope_scaling": scaling, "rope_dims": None if turned == d_head else turned}


def _scaling(fields: Fields, context_length: int) -> RopeScaling | None:
    """Read RoPE's scaling; a factor without a type is linear."""
    kind = fields.get("rope.scaling.type", "linear")
    factor = fields.get("rope.scaling.factor", fields.get("rope.scale_linear")) or 1.0  # 0 asks for nothing
    original = fields.whole("rope.scaling.original_context_length", context_length)
    if kind in ("none", "longrope") or (kind == "linear" and factor == 1):
        return None
    if kind == "linear":
        return RopeScaling(kind="linear", factor=factor)
    if kind != "yarn":
        raise ValueError(f"rope.scaling.type = {kind!r} is not supported; it must be 'none', 'linear' or 'yarn'.")
    return RopeScaling(
        kind="yarn",
        factor=factor,
        low_frequency_factor=fields.real("rope.scaling.yarn_beta_slow", 1.0),
        high_frequency_factor=fields.real("rope.scaling.yarn_beta_fast", 32.0),
        original_context_length=original,
    )


def _llama3_scaling(fields: Fields, source: TensorSource, read: Mapping[str, Any], own: torch.Tensor) -> RopeScaling:
    """Recognise LLaMA 3.1's scaling, which a file holds as the factor each frequency is divided by."""
    factors = source.read(_FACTORS, torch.float64)
    scaling = RopeScaling(kind="llama3", factor=max(float(factors.max()), 1.0))
    expected = own / rope_frequencies(2 * len(own), fields.real("rope.freq_base", 10_000.0), scaling)
    if factors.shape != expected.shape or not torch.allclose(factors, expected, rtol=1e-4):
        raise ValueError(f"{_FACTORS} holds factors that are not those of LLaMA 3.1's scaling.")
    return scaling


def _longrope(fields: Fields, source: TensorSource, read: Mapping[str, Any], own: torch.Tensor) -> RopeScaling:
    """Read LongRoPE's factors, which a file holds in two tensors."""
    shapes = source.shapes()
    if not shapes.get(_SHORT) == shapes[_LONG] == tuple(own.shape):
        raise ValueError(f"{_SHORT} and {_LONG} must hold {len(own)} factors each.")
    short, long = (tuple(source.read(name, torch.float64).tolist()) for name in (_SHORT, _LONG))
    original = fields.whole("rope.scaling.original_context_length", read["context_length"])
    return RopeScaling(
        kind="longrope",
        factor=read["context_length"] / original,
        original_context_length=original,
        short_factors=short,
        long_factors=long,
        magnitude=fields.get("rope.scaling.attn_factor") or 1.0,
    )


def _gemma_scales(n_layers_of_27b: int) -> Rule:
    """Scores are scaled by the head's size, in the 27-billion model alone by d_model / n_heads; files do not say so."""

    def read(fields: Fields, read: Mapping[str, Any]) -> dict[str, Any]:
        d_head = read["d_head"] or 256
        per_head = read["d_model"] / read["n_heads"] if read["n_layers"] == n_layers_of_27b else d_head
        scales = {"attention_scale": per_head**-0.5, "embedding_scale": math.sqrt(read["d_model"])}
        return {"d_head": d_head, "logit_softcap": fields.get("final_logit_softcapping") or None} | scales

    return read


def _gemma2_cap(fields: Fields, _read: Mapping[str, Any]) -> dict[str, Any]:
    return {"attention_softcap": fields.get("attn_logit_softcapping") or None}


def _gemma3_base(fields: Fields, _read: Mapping[str, Any]) -> dict[str, Any]:
    return {"rope_base_local": fields.real("rope.freq_base_swa", 10_000.0)}


def _granite(fields: Fields, read: Mapping[str, Any]) -> dict[str, Any]:
    """Read the four scales. Files of Granite 4 have the fields of its larger models, with Mamba and experts, too."""
    for name in ("conv_kernel", "state_size", "group_count", "inner_size", "time_step_rank"):
        fields.get(f"ssm.{name}")  # without tensors of Mamba they say nothing, and those would be refused
    return {
        "d_mlp": fields.get("expert_shared_feed_forward_length") or read["d_mlp"],
        "embedding_scale": fields.get("embedding_scale") or 1.0,
        "attention_scale": fields.get("attention.scale") or None,
        "residual_scale": fields.get("residual_scale") or 1.0,
        "logit_scale": 1 / (fields.get("logit_scale") or 1.0),
        # For this family it says whether there is RoPE at all.
        "unrotated_layers": () if fields.switch("rope.scaling.finetuned", True) else tuple(range(read["n_layers"])),
    }


def _stablelm(fields: Fields, _read: Mapping[str, Any]) -> dict[str, Any]:
    fields.get("use_parallel_residual")  # says True in many files of blocks with two norms; one norm would be missed
    return {}


def _gptneox(fields: Fields, _read: Mapping[str, Any]) -> dict[str, Any]:
    return {"parallel_residual": fields.switch("use_parallel_residual", True)}


def _smollm3(_fields: Fields, read: Mapping[str, Any]) -> dict[str, Any]:
    return {"unrotated_layers": tuple(range(3, read["n_layers"], 4))}


def _gpt_oss(_fields: Fields, read: Mapping[str, Any]) -> dict[str, Any]:
    scaling = read["rope_scaling"]
    return {"rope_scaling": None if scaling is None else replace(scaling, whole_pairs=False)}


_GATELESS = dict(gated_mlp=False)
_GEMMA = dict(activation="gelu_tanh")
ARCHITECTURES: Mapping[str, Architecture] = {
    "gpt2": Architecture(_FUSED_QKV, always=_GATELESS | dict(activation="gelu_tanh")),
    "gptneox": Architecture(_FUSED_QKV, always=_GATELESS | dict(activation="gelu"), rules=(_gptneox,)),
    "llama": Architecture(_NEIGHBOURS),
    "granite": Architecture(_NEIGHBOURS, rules=(_granite,)),
    "stablelm": Architecture(rules=(_stablelm,)),
    "smollm3": Architecture(_NEIGHBOURS, rules=(_smollm3,)),
    "qwen2": Architecture(),
    "qwen3": Architecture(),
    "olmo2": Architecture(),
    "phi3": Architecture(_FUSED_QKV | _FUSED_MLP),
    "gemma2": Architecture(always=_GEMMA, rules=(_gemma_scales(46), _gemma2_cap), window_pattern=2),
    "gemma3": Architecture(
        always=_GEMMA, rules=(_gemma_scales(62), _gemma3_base), rope_base=1_000_000.0, window_pattern=6
    ),
    "qwen3moe": Architecture(),
    "olmoe": Architecture(always=dict(expert_weights_over="all")),
    "gpt-oss": Architecture(
        {"mlp_norm": "post_attention_norm"},
        always=dict(activation="gelu_sigmoid", mlp_limit=7.0, mlp_up_offset=1.0),
        rules=(_gpt_oss,),
        rope_base=150_000.0,
        window_pattern=2,
    ),
}
"""`general.architecture` -> what its files do not say. Mistral's and Mixtral's files are LLaMA's."""
