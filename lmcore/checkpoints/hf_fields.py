"""What the `config.json` files of Hugging Face's families have in common."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lmcore.checkpoints.fields import Fields
from lmcore.checkpoints.names import Names
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

LLAMA_NAMES = Names(
    top={"token_embedding": "embed_tokens", "final_norm": "norm", "head": "lm_head"},
    block={
        "attn_norm": "input_layernorm",
        "attn.q": "self_attn.q_proj",
        "attn.k": "self_attn.k_proj",
        "attn.v": "self_attn.v_proj",
        "attn.q_norm": "self_attn.q_norm",
        "attn.k_norm": "self_attn.k_norm",
        "attn.out": "self_attn.o_proj",
        "mlp_norm": "post_attention_layernorm",
        "mlp.gate": "mlp.gate_proj",
        "mlp.up": "mlp.up_proj",
        "mlp.down": "mlp.down_proj",
    },
    block_prefix="layers.{i}.",
    prefixes=("model.",),
    ignored=r"layers\.\d+\.self_attn\.rotary_emb\.inv_freq",  # RoPE's frequencies, stored by old files
)
"""The names of LLaMA, which the families after it share."""


def sizes(fields: Fields) -> dict[str, Any]:
    """Read the sizes, which the families after LLaMA name alike, as fields of `ModelConfig`."""
    return {
        "vocab_size": fields.whole("vocab_size"),
        "d_model": fields.whole("hidden_size"),
        "n_layers": fields.whole("num_hidden_layers"),
        "n_heads": fields.whole("num_attention_heads"),
        "n_kv_heads": fields.optional_whole("num_key_value_heads"),
        "d_head": fields.optional_whole("head_dim"),
        "d_mlp": fields.whole("intermediate_size"),
        "context_length": fields.whole("max_position_embeddings"),
        "norm_eps": fields.real("rms_norm_eps", 1e-6),
    }


def rope_of(fields: Fields, sized: Mapping[str, Any], default_base: float = 10_000.0) -> dict[str, Any]:
    """Read RoPE's base and scaling as fields of `ModelConfig`; `sized` are those that `sizes` read.

    Where a file has both the older table rope_scaling and the newer rope_parameters, the older stands in the newer's
    place, its base too (transformers' `convert_rope_params_to_dict`).
    """
    older, base = fields.get("rope_scaling"), fields.real("rope_theta", default_base)
    table = "rope_scaling" if older else "rope_parameters"
    if older:
        fields.get("rope_parameters")
    return rope(fields.within(table), sized, base)


def rope(table: Fields, sized: Mapping[str, Any], default_base: float) -> dict[str, Any]:
    """Read a table of RoPE's parameters as fields of `ModelConfig`.

    Raises:
        ValueError: for a kind of scaling that is not read, or a parameter that is not understood.
    """
    older_kind = table.get("type", "default")
    kind, base = table.get("rope_type", older_kind), table.real("rope_theta", default_base)
    read: dict[str, Any] = {"rope_base": base, "rope_scaling": None}
    if kind in ("default", "dynamic"):  # "dynamic" changes the base of texts longer than the context, which none is
        for parameter in ("factor", "original_max_position_embeddings"):
            table.get(parameter)
        return read
    if kind not in ("linear", "llama3", "yarn"):
        raise ValueError(
            f"rope_type = {kind!r} is not supported; it must be 'default', 'linear', 'dynamic', 'llama3' or 'yarn'."
        )
    if kind == "linear":
        table.get("original_max_position_embeddings")
        return read | {"rope_scaling": RopeScaling(kind="linear", factor=table.real("factor"))}
    original = table.whole("original_max_position_embeddings", sized["context_length"])
    low, high = ("low_freq_factor", "high_freq_factor") if kind == "llama3" else ("beta_slow", "beta_fast")
    factor = table.real("factor", None if kind == "llama3" else sized["context_length"] / original)
    scaling = RopeScaling(
        kind=kind,
        factor=factor,
        low_frequency_factor=table.real(low, None if kind == "llama3" else 1.0),
        high_frequency_factor=table.real(high, None if kind == "llama3" else 32.0),
        original_context_length=original,
    )
    read["rope_scaling"] = scaling
    if kind == "yarn" and (sharper := _yarn_factor(table, scaling)) != 1:
        d_head = sized["d_head"] or sized["d_model"] // sized["n_heads"]
        read["attention_scale"] = sharper**2 / math.sqrt(d_head)
    return read


def _yarn_factor(table: Fields, scaling: RopeScaling) -> float:
    """Return what YaRN multiplies queries and keys by: given, or from the factor (transformers' `get_mscale`)."""
    if table.get("attention_factor") is not None:
        return table.real("attention_factor")
    above, below = table.get("mscale"), table.get("mscale_all_dim")
    if above and below:
        grown = 0.1 * math.log(max(scaling.factor, 1.0))
        return (table.real("mscale") * grown + 1) / (table.real("mscale_all_dim") * grown + 1)
    return scaling.attention_factor


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
