"""GPT-2, and GPT-NeoX with Pythia: LayerNorm with biases, an MLP without a gate."""

from __future__ import annotations

from lmcore.checkpoints.families.declaration import Family, activation, layers, optional_whole, real, switch, whole
from lmcore.checkpoints.hf_fields import rotation
from lmcore.checkpoints.names import Names, TensorLocation

GPT2 = Family(
    names=Names(
        top={"token_embedding": "wte", "position": "wpe", "final_norm": "ln_f", "head": "lm_head"},
        block={
            "attn_norm": "ln_1",
            "attn.q": TensorLocation("attn.c_attn", part="q", of=("q", "k", "v"), transposed=True),
            "attn.k": TensorLocation("attn.c_attn", part="k", of=("q", "k", "v"), transposed=True),
            "attn.v": TensorLocation("attn.c_attn", part="v", of=("q", "k", "v"), transposed=True),
            "attn.out": TensorLocation("attn.c_proj", transposed=True),
            "mlp_norm": "ln_2",
            "mlp.up": TensorLocation("mlp.c_fc", transposed=True),
            "mlp.down": TensorLocation("mlp.c_proj", transposed=True),
        },
        block_prefix="h.{i}.",
        prefixes=("transformer.",),
        ignored=r"h\.\d+\.attn\.(masked_)?bias",  # the causal mask, stored by old files
    ),
    said={
        "vocab_size": whole("vocab_size"),
        "d_model": whole("n_embd"),
        "n_layers": layers("n_layer"),
        "n_heads": whole("n_head"),
        "context_length": whole("n_positions"),
        "d_mlp": optional_whole("n_inner"),
        "norm_eps": real("layer_norm_epsilon", 1e-5),
        "activation": activation("activation_function", default="gelu_new"),
    },
    always=dict(
        norm="layernorm",
        norm_bias=True,
        gated_mlp=False,
        position_encoding="learned",
        attention_bias=True,
        attention_out_bias=True,
        mlp_bias=True,
    ),
    required={"scale_attn_by_inverse_layer_idx": (False,), "scale_attn_weights": (True,)},
    tied=True,
    harmless=(
        "resid_pdrop",
        "embd_pdrop",
        "attn_pdrop",
        "summary_type",
        "summary_use_proj",
        "summary_activation",
        "summary_proj_to_labels",
        "summary_first_dropout",
        "reorder_and_upcast_attn",
        "n_ctx",
        "task_specific_params",
    ),
)

GPT_NEOX = Family(
    names=Names(
        top={
            "token_embedding": "embed_in",
            "final_norm": "final_layer_norm",
            "head": TensorLocation("embed_out", or_="lm_head"),
        },
        block={
            "attn_norm": "input_layernorm",
            "attn.q": TensorLocation("attention.query_key_value", part="q", of=("q", "k", "v"), order="by_head"),
            "attn.k": TensorLocation("attention.query_key_value", part="k", of=("q", "k", "v"), order="by_head"),
            "attn.v": TensorLocation("attention.query_key_value", part="v", of=("q", "k", "v"), order="by_head"),
            "attn.out": "attention.dense",
            "mlp_norm": "post_attention_layernorm",
            "mlp.up": "mlp.dense_h_to_4h",
            "mlp.down": "mlp.dense_4h_to_h",
        },
        block_prefix="layers.{i}.",
        prefixes=("gpt_neox.",),
        ignored=r"layers\.\d+\.attention\.((masked_)?bias|rotary_emb\.inv_freq)",  # stored by old files
    ),
    said={
        "vocab_size": whole("vocab_size"),
        "d_model": whole("hidden_size"),
        "n_layers": layers("num_hidden_layers"),
        "n_heads": whole("num_attention_heads"),
        "d_mlp": whole("intermediate_size"),
        "context_length": whole("max_position_embeddings"),
        "norm_eps": real("layer_norm_eps", 1e-5),
        "activation": activation("hidden_act", default="gelu"),
        "parallel_residual": switch("use_parallel_residual", True),
        "attention_bias": switch("attention_bias", True),
        "attention_out_bias": switch("attention_bias", True),
    },
    always=dict(norm="layernorm", norm_bias=True, gated_mlp=False, mlp_bias=True),
    rules=(rotation(base="rotary_emb_base", partial="rotary_pct", default_partial=0.25),),
    harmless=("hidden_dropout", "classifier_dropout", "is_decoder"),
)
