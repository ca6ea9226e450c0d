"""GPT-2 (Hugging Face names): config and weights there -> config and weights here."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from lmcore.checkpoints.fields import Fields
from lmcore.checkpoints.names import Names, Place
from lmcore.config import Activation, ModelConfig

_ACTIVATIONS: dict[str, Activation] = {
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu": "gelu",
    "relu": "relu",
}
HARMLESS = (
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
)

NAMES = Names(
    top={"token_embedding": "wte", "position": "wpe", "final_norm": "ln_f", "head": "lm_head"},
    block={
        "attn_norm": "ln_1",
        "attn.q": Place("attn.c_attn", third=0, transposed=True),
        "attn.k": Place("attn.c_attn", third=1, transposed=True),
        "attn.v": Place("attn.c_attn", third=2, transposed=True),
        "attn.out": Place("attn.c_proj", transposed=True),
        "mlp_norm": "ln_2",
        "mlp.up": Place("mlp.c_fc", transposed=True),
        "mlp.down": Place("mlp.c_proj", transposed=True),
    },
    block_prefix="h.{i}.",
    prefixes=("transformer.",),
    ignored=r"h\.\d+\.attn\.(masked_)?bias",  # the causal mask, stored by old files
)


def config_from(fields: Fields) -> ModelConfig:
    """Translate the fields of a GPT-2 `config.json`.

    Raises:
        ValueError: for a field or value that is not understood, naming it.
    """
    fields.require("scale_attn_by_inverse_layer_idx", False)
    fields.require("scale_attn_weights", True)
    return ModelConfig(
        vocab_size=fields.whole("vocab_size"),
        d_model=fields.whole("n_embd"),
        n_layers=fields.whole("n_layer"),
        n_heads=fields.whole("n_head"),
        context_length=fields.whole("n_positions"),
        d_mlp=fields.optional_whole("n_inner"),  # type: ignore[arg-type]
        norm="layernorm",
        norm_eps=fields.real("layer_norm_epsilon", 1e-5),
        norm_bias=True,
        activation=fields.one_of("activation_function", _ACTIVATIONS, "gelu_new"),
        gated_mlp=False,
        position_encoding="learned",
        tie_embeddings=fields.switch("tie_word_embeddings", True),
        attention_bias=True,
        attention_out_bias=True,
        mlp_bias=True,
    )


def weights_from(tensors: Mapping[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """Rename the tensors; GPT-2 stores matrices as [in, out] and q, k, v side by side."""
    return NAMES.rename(tensors, config)
