"""What the `config.json` files of Hugging Face's families have in common."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from lmcore.checkpoints.fields import Fields
from lmcore.config import RopeScaling

HARMLESS = (
    "transformers_version",
    "architectures",
    "output_hidden_states",
    "output_attentions",
    "return_dict",
    "dtype",
    "torch_dtype",
    "chunk_size_feed_forward",
    "id2label",
    "label2id",
    "problem_type",
    "_name_or_path",
    "name_or_path",
    "model_type",
    "use_cache",
    "initializer_range",
    "attention_dropout",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "unk_token_id",
    "_attn_implementation",
    "attn_implementation",
    "transformers.js_config",
    "is_llama_config",
    "use_return_dict",
    "auto_map",
)
"""Fields that change no number of a forward pass: names of labels, training, where the file came from."""

CHANGES_NUMBERS: Mapping[str, tuple[Any, ...]] = {
    # what attention sees and how it weighs
    "alibi": (False,),
    "attention_chunk_size": (),
    "attention_multiplier": (),
    "attention_sinks": (0,),
    "attn_logit_softcapping": (),
    "clip_qkv": (),
    "is_causal": (True,),
    "kv_lora_rank": (),
    "layer_types": (),
    "multi_query": (False,),
    "no_rope_layers": ([],),
    "partial_rotary_factor": (1,),
    "position_embedding_type": ("absolute", "rope", "rotary"),
    "q_lora_rank": (),
    "qk_layernorm": (False,),
    "qk_norm": (False,),
    "query_pre_attn_scalar": (),
    "rope_interleaved": (False,),
    "rope_scaling": ({},),
    "rotary_dim": (),
    "rotary_pct": (1,),
    "sliding_window": (),
    "use_alibi": (False,),
    "use_attention_sinks": (False,),
    "use_bidirectional_attention": (False,),
    "use_qk_norm": (False,),
    "use_rope": (True,),
    "use_sliding_window": (False,),
    # what else stands in a block, and in which order
    "add_bias_linear": (False,),
    "add_cross_attention": (False,),
    "apply_residual_connection_post_layernorm": (False,),
    "attention_bias": (False,),
    "bias": (False,),
    "do_layer_norm_before": (True,),
    "enable_moe_block": (False,),
    "is_encoder_decoder": (False,),
    "lm_head_bias": (False,),
    "mlp_bias": (False,),
    "n_routed_experts": (0,),
    "num_experts": (0,),
    "num_local_experts": (0, 1),
    "parallel_attn": (False,),
    "parallel_residual": (False,),
    "pruned_heads": ({},),
    "qkv_bias": (False,),
    "use_bias": (False,),
    "use_parallel_residual": (False,),
    "use_qkv_bias": (False,),
    # factors on the way
    "dim_model_base": (),
    "embedding_multiplier": (1,),
    "final_logit_softcapping": (),
    "lm_head_multiplier": (1,),
    "logit_scale": (1,),
    "logits_scaling": (1,),
    "residual_multiplier": (1,),
    "scale_depth": (),
    "scale_emb": (1,),
    # how the weights are stored
    "quantization_config": ({},),
    # parameters of a scaling of RoPE
    "attention_factor": (1,),
    "beta_fast": (),
    "beta_slow": (),
    "long_factor": (),
    "mrope_section": (),
    "mscale": (),
    "mscale_all_dim": (),
    "short_factor": (),
    "truncate": (True,),
}
"""Fields of decoder-only families that change the numbers -> values with which they ask for nothing.

A family that reads a field decides about it; elsewhere another value is refused, even where transformers' model of that
family would not look at it: whoever wrote it into the file meant it.
"""


def rotation(
    default_base: float = 10_000.0,
    base: str = "rope_theta",
    partial: str | None = None,
    default_partial: float = 1.0,
    words: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[Fields, Mapping[str, Any]], dict[str, Any]]:
    """Return a rule that reads RoPE's base, scaling and share of each head.

    Where a file has both the older table rope_scaling and the newer rope_parameters, the older stands in the newer's
    place, its base too (transformers' `convert_rope_params_to_dict`).

    Args:
        default_base: the base where the file does not say.
        base: the older field that says it, outside the tables.
        partial: the older field that says which share of a head's components is turned; None in families that always
            turn all.
        default_partial: that share where the file does not say.
        words: kind of scaling -> what the family means by it.
    """

    def read(fields: Fields, sized: Mapping[str, Any]) -> dict[str, Any]:
        older, own_base = fields.get("rope_scaling"), fields.real(base, default_base)
        name = "rope_scaling" if older else "rope_parameters"
        if older:
            fields.get("rope_parameters")
        table = fields.within(name)
        if (original := fields.optional_whole("original_max_position_embeddings")) is not None:
            table = fields.within(name, over={"original_max_position_embeddings": original})
        rotated: dict[str, Any] = {}
        if partial is not None:
            share = table.real("partial_rotary_factor", fields.real(partial, default_partial))
            d_head = sized.get("d_head") or sized["d_model"] // sized["n_heads"]
            rotated = {"rope_dims": int(d_head * share) if share != 1 else None}
        return rope(table, sized, own_base, words) | rotated

    return read


_KINDS = ("linear", "dynamic", "llama3", "yarn", "longrope")


def rope(
    table: Fields, sized: Mapping[str, Any], default_base: float, words: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """Read a table of RoPE's parameters as fields of `ModelConfig`; `sized` are the sizes read before.

    Raises:
        ValueError: for a kind of scaling that is not read, or a parameter that is not understood.
    """
    older_kind = table.get("type", "default")
    base, kind = table.real("rope_theta", default_base), table.get("rope_type", older_kind)
    if isinstance(kind, str) and kind in words:
        kind = words[kind]
    read: dict[str, Any] = {"rope_base": base, "rope_scaling": None}
    if kind in ("default", "dynamic"):  # "dynamic" changes the base of texts longer than the context, which none is
        for parameter in ("factor", "original_max_position_embeddings"):
            table.get(parameter)
        return read
    if kind not in _KINDS:
        raise ValueError(f"rope_type = {kind!r} is not supported; 'default' and {', '.join(map(repr, _KINDS))} are.")
    if kind == "linear":
        table.get("original_max_position_embeddings")
        return read | {"rope_scaling": RopeScaling(kind="linear", factor=table.real("factor"))}
    original = table.whole("original_max_position_embeddings", sized["context_length"])
    grown = sized["context_length"] / original
    if kind == "longrope":
        scaling = RopeScaling(
            kind="longrope",
            factor=table.real("factor", grown),
            original_context_length=original,
            magnitude=None if table.get("attention_factor") is None else table.real("attention_factor"),
            short_factors=_factors(table, "short_factor"),
            long_factors=_factors(table, "long_factor"),
        )
        return read | {"rope_scaling": scaling}
    low, high = ("low_freq_factor", "high_freq_factor") if kind == "llama3" else ("beta_slow", "beta_fast")
    scaling = RopeScaling(
        kind=kind,
        factor=table.real("factor", None if kind == "llama3" else grown),
        low_frequency_factor=table.real(low, None if kind == "llama3" else 1.0),
        high_frequency_factor=table.real(high, None if kind == "llama3" else 32.0),
        original_context_length=original,
    )
    if kind == "yarn":
        whole = table.switch("truncate", True)
        scaling = replace(scaling, whole_pairs=whole, magnitude=_yarn_magnitude(table, scaling))
    return read | {"rope_scaling": scaling}


def _factors(table: Fields, name: str) -> tuple[float, ...]:
    factors = table.get(name, [])
    if not isinstance(factors, list) or not all(
        isinstance(factor, int | float) and abs(factor) <= sys.float_info.max for factor in factors
    ):
        raise ValueError(f"{name} must be a list of numbers, got {factors!r:.80}.")
    return tuple(float(factor) for factor in factors)


def _yarn_magnitude(table: Fields, scaling: RopeScaling) -> float | None:
    """Return what YaRN multiplies queries and keys by, None for its own rule (transformers' `get_mscale`)."""
    if table.get("attention_factor") is not None:
        return table.real("attention_factor")
    above, below = table.get("mscale"), table.get("mscale_all_dim")
    if above and below:
        grown = 0.1 * math.log(max(scaling.factor, 1.0))
        return (table.real("mscale") * grown + 1) / (table.real("mscale_all_dim") * grown + 1)
    return None


def windows(fields: Fields, n_layers: int, default: Sequence[str] = ()) -> dict[str, Any]:
    """Read which blocks see a sliding window only, as fields of `ModelConfig`.

    Args:
        fields: the config's.
        n_layers: the number of blocks.
        default: what `layer_types` is where the file does not say.
    """
    kinds = fields.get("layer_types", list(default) or ["full_attention"] * n_layers)
    window = fields.optional_whole("sliding_window")
    if (
        not isinstance(kinds, list)
        or len(kinds) != n_layers
        or not set(kinds) <= {"full_attention", "sliding_attention"}
    ):
        raise ValueError(f"layer_types = {kinds!r:.80} must say full_attention or sliding_attention for each layer.")
    local = tuple(i for i, kind in enumerate(kinds) if kind == "sliding_attention")
    if local and window is None:
        raise ValueError("sliding_window is missing, but layer_types has 'sliding_attention'.")
    return {"local_layers": local, "sliding_window": window if local else None}


def windows_everywhere(fields: Fields, sized: Mapping[str, Any]) -> dict[str, Any]:
    """Read the window of every block, in families where `sliding_window` alone asks for it."""
    window = fields.get("sliding_window")
    kind = "full_attention" if window is None else "sliding_attention"
    return windows(fields, sized["n_layers"], [kind] * sized["n_layers"])
