"""What the `config.json` files of Hugging Face's families have in common."""

from __future__ import annotations

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
    "is_encoder_decoder",
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


def rope(values: Any, default_base: float, where: str = "rope_parameters") -> tuple[float, RopeScaling | None]:
    """Read a table of RoPE's parameters: its base and its scaling.

    Raises:
        ValueError: for a kind of scaling that is not read, or a parameter that is not understood.
    """
    if not isinstance(values, dict):
        raise ValueError(f"{where} must be a table, got {values!r:.80}.")
    fields = Fields(values)
    kind = fields.get("rope_type", fields.get("type", "default"))
    fields.get("type")
    base = fields.real("rope_theta", default_base)
    scaling = None
    if kind == "linear":
        scaling = RopeScaling(kind="linear", factor=fields.real("factor"))
    elif kind == "llama3":
        scaling = RopeScaling(
            kind="llama3",
            factor=fields.real("factor"),
            low_frequency_factor=fields.real("low_freq_factor"),
            high_frequency_factor=fields.real("high_freq_factor"),
            original_context_length=fields.whole("original_max_position_embeddings"),
        )
    elif kind != "default":
        raise ValueError(f"rope_type = {kind!r} is not supported; it must be 'default', 'linear' or 'llama3'.")
    fields.finish()
    return base, scaling


def rope_of(fields: Fields, default_base: float = 10_000.0) -> dict[str, Any]:
    """Read RoPE's base and scaling, in the older fields or the newer table, as fields of `ModelConfig`."""
    older = dict(fields.get("rope_scaling", {}))
    base = fields.real("rope_theta", default_base)
    table = fields.get("rope_parameters", older)
    base, scaling = rope(table, base)
    return {"rope_base": base, "rope_scaling": scaling}


def windows(fields: Fields, n_layers: int) -> dict[str, Any]:
    """Read which blocks see a sliding window only, as fields of `ModelConfig`."""
    kinds = fields.get("layer_types")
    window = fields.optional_whole("sliding_window")
    if kinds is None:
        return {}
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
