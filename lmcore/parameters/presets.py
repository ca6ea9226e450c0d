"""Configs of published models, each with its sources.

RoPE scaling for long contexts (Llama 3.2) and Gemma 3's second RoPE base have no parameters and are
not part of these configs.
"""

from __future__ import annotations

from typing import Any

from lmcore.parameters.encoder_decoder import cross_attention_parts, encoder_parts
from lmcore.parameters.published import Part, PublishedConfig

_SIZES = ("vocab_size", "d_model", "n_layers", "n_heads", "n_kv_heads", "d_mlp", "context_length")

_TIED = "tie_word_embeddings is true in the released config.json"
_UNTIED = "tie_word_embeddings is false in the released config.json; the weights hold an output matrix of their own"

_GPT2_STYLE: dict[str, Any] = {
    "norm": "layernorm",
    "norm_bias": True,
    "gated_mlp": False,
    "position_encoding": "learned",
    "attention_bias": True,
    "attention_out_bias": True,
    "mlp_bias": True,
}
_BERT_PARTS = (
    Part("token_type_embedding", "embedding", "2 * d_model"),
    Part("embedding_norm", "norm", "d_model"),
    Part("embedding_norm.bias", "norm", "d_model"),
    Part("pooler", "other", "d_model * d_model"),
    Part("pooler.bias", "other", "d_model"),
)
_TRANSFORMER_2017_PARTS = (
    *cross_attention_parts(norm_bias=True),
    # The third of the matrices made one; ModelConfig has the decoder's input and the output.
    Part("encoder.token_embedding", "embedding", "vocab_size * d_model", tied_to="token_embedding"),
    *encoder_parts(mlp_bias=True, norm_bias=True),
)
_FINAL_NORM = frozenset({"final_norm", "final_norm.bias"})  # post-norm blocks need none


def _published(title: str, *sizes: int, **fields: Any) -> PublishedConfig:
    """Build a config from its sizes in the order of _SIZES; the other fields default to LLaMA's choices."""
    fields |= zip(_SIZES, sizes, strict=True)
    return PublishedConfig(title=title, **fields)


def _gpt2(
    title: str, d_model: int, n_layers: int, n_heads: int, context_length: int = 1024, **fields: Any
) -> PublishedConfig:
    sources = {
        "source": f"hparams.json released for {title} and src/model.py, github.com/openai/gpt-2",
        "tie_source": "src/model.py of github.com/openai/gpt-2 multiplies by the token embedding wte for logits",
    }
    return _published(
        title,
        50_257,
        d_model,
        n_layers,
        n_heads,
        n_heads,
        4 * d_model,
        context_length,
        activation="gelu_tanh",
        **_GPT2_STYLE,
        **sources | fields,
    )


def _llama_1(title: str, *sizes: int, norm_eps: float) -> PublishedConfig:
    return _published(
        title,
        *sizes,
        norm_eps=norm_eps,
        tie_embeddings=False,
        source="Touvron et al. 2023, LLaMA, section 2 and table 2; d_mlp and vocabulary from the released files",
        tie_source="model.py of github.com/meta-llama/llama makes the output matrix a layer of its own",
    )


def _hub(repository: str, tied: bool = True, **fields: Any) -> dict[str, Any]:
    source = f"config.json of {repository} on the Hugging Face Hub"
    return {"source": source, "tie_embeddings": tied, "tie_source": _TIED if tied else _UNTIED, **fields}


def _llama_3(repository: str, tied: bool = True) -> dict[str, Any]:
    return _hub(f"meta-llama/{repository}", tied, rope_base=500_000.0)


def _qwen(repository: str, tied: bool = True, **fields: Any) -> dict[str, Any]:
    return _hub(f"Qwen/{repository}", tied, rope_base=1e6, norm_eps=1e-6, **fields)


def _smollm2(size: str, rope_base: float) -> dict[str, Any]:
    return _hub(f"HuggingFaceTB/SmolLM2-{size}", rope_base=rope_base)


def _gemma_3(title: str, *sizes: int) -> PublishedConfig:
    _, d_model, n_layers, *_ = sizes
    return _published(
        title,
        *sizes,
        d_head=256,
        norm_eps=1e-6,
        activation="gelu_tanh",
        embedding_scale=d_model**0.5,
        rope_base=1e6,
        norm_unit_offset=True,
        qk_norm=True,
        sandwich_norm=True,
        rope_base_local=10_000.0,
        sliding_window=512,
        local_layers=tuple(i for i in range(n_layers) if (i + 1) % 6),  # every sixth is global
        source="gemma/gm/nn/_gemma.py of github.com/google-deepmind/gemma; context length from the model card",
        tie_source="Embedder.decode in gemma/gm/nn/_modules.py multiplies by the transposed input embedding",
    )


def _t5(title: str, d_model: int, n_layers: int, n_heads: int, d_mlp: int, **fields: Any) -> PublishedConfig:
    encoder = [
        *encoder_parts(gated_mlp=fields["gated_mlp"]),
        Part("encoder.position_bias", "position", "relative_buckets * n_heads"),
        Part("encoder.final_norm", "norm", "d_model"),
    ]
    return _published(
        title,
        32_128,
        d_model,
        n_layers,
        n_heads,
        n_heads,
        d_mlp,
        512,
        d_head=64,
        norm_eps=1e-6,
        position_encoding="relative",
        architecture="encoder-decoder",
        n_encoder_layers=n_layers,
        extra_parts=(*cross_attention_parts(), *encoder),
        **fields,
    )


PRESETS: dict[str, PublishedConfig] = {
    "curriculum-12x768": _published(
        "12 layers, d_model 768, vocabulary 6144",
        6144,
        768,
        12,
        12,
        12,
        1792,
        2048,
        source="a worked example; its 12 heads and context length are chosen and do not enter the parameter count",
        tie_source="tied as given",
    ),
    "transformer-2017": _published(
        "Transformer (2017, base)",
        37_000,
        512,
        6,
        8,
        8,
        2048,
        512,
        norm="layernorm",
        norm_bias=True,
        activation="relu",
        gated_mlp=False,
        mlp_bias=True,
        position_encoding="sinusoidal",
        embedding_scale=512**0.5,
        architecture="encoder-decoder",
        n_encoder_layers=6,
        extra_parts=_TRANSFORMER_2017_PARTS,
        absent_parts=_FINAL_NORM,
        source="Vaswani et al. 2017, sections 3 and 5.1 (about 37,000 tokens) and table 3; attention without biases, "
        "as its formulas have none. The context length is chosen and does not enter the parameter count",
        tie_source="Vaswani et al. 2017, section 3.4: the two embeddings and the output matrix are one",
    ),
    "gpt2": _gpt2("GPT-2 small", 768, 12, 12),
    "gpt2-medium": _gpt2("GPT-2 medium", 1024, 24, 16),
    "gpt2-large": _gpt2("GPT-2 large", 1280, 36, 20),
    "gpt2-xl": _gpt2("GPT-2 XL", 1600, 48, 25),
    "gpt3-175b": _gpt2(
        "GPT-3 175B",
        12_288,
        96,
        96,
        context_length=2048,
        source="Brown et al. 2020, section 2.1 and table 2.1; biases, norms and vocabulary as in GPT-2",
        tie_source="not stated in the paper; counted as in GPT-2, whose architecture it says it uses (section 2.1)",
    ),
    "bert-base": _published(
        "BERT base (uncased)",
        30_522,
        768,
        12,
        12,
        12,
        3072,
        512,
        activation="gelu",
        norm_eps=1e-12,
        **_GPT2_STYLE,
        architecture="encoder",
        extra_parts=_BERT_PARTS,
        absent_parts=_FINAL_NORM,
        source="bert_config.json and modeling.py of github.com/google-research/bert, with token types and pooler; "
        "without the 622,650 parameters that the masked-LM head has of its own (transform, norm, output bias)",
        tie_source="get_masked_lm_output in run_pretraining.py of github.com/google-research/bert multiplies by the "
        "token embedding and adds a bias of its own",
    ),
    "t5-small": _t5(
        "T5 v1.0 small",
        512,
        6,
        8,
        2048,
        gated_mlp=False,
        activation="relu",
        source="config.json of google-t5/t5-small",
        tie_source="released_checkpoints.md of github.com/google-research/text-to-text-transfer-transformer lists "
        "not sharing as a change of v1.1",
    ),
    "t5-v1.1-small": _t5(
        "T5 v1.1 small",
        512,
        8,
        6,
        1024,
        gated_mlp=True,
        activation="gelu_tanh",
        tie_embeddings=False,
        source="config.json of google/t5-v1_1-small",
        tie_source="released_checkpoints.md of github.com/google-research/text-to-text-transfer-transformer: "
        "embedding and classifier share no parameters",
    ),
    "llama-7b": _llama_1("LLaMA 7B", 32_000, 4096, 32, 32, 32, 11_008, 2048, norm_eps=1e-6),
    "llama-13b": _llama_1("LLaMA 13B", 32_000, 5120, 40, 40, 40, 13_824, 2048, norm_eps=1e-6),
    "llama-65b": _llama_1("LLaMA 65B", 32_000, 8192, 80, 64, 64, 22_016, 2048, norm_eps=1e-5),
    "llama-2-7b": _published(
        "Llama 2 7B", 32_000, 4096, 32, 32, 32, 11_008, 4096, **_hub("meta-llama/Llama-2-7b-hf", tied=False)
    ),
    "llama-3-8b": _published(
        "Llama 3 8B", 128_256, 4096, 32, 32, 8, 14_336, 8192, **_llama_3("Meta-Llama-3-8B", tied=False)
    ),
    "llama-3.2-1b": _published("Llama 3.2 1B", 128_256, 2048, 16, 32, 8, 8192, 131_072, **_llama_3("Llama-3.2-1B")),
    "llama-3.2-3b": _published("Llama 3.2 3B", 128_256, 3072, 28, 24, 8, 8192, 131_072, **_llama_3("Llama-3.2-3B")),
    "gemma-3-270m": _gemma_3("Gemma 3 270M", 262_144, 640, 18, 4, 1, 2048, 32_768),
    "gemma-3-1b": _gemma_3("Gemma 3 1B", 262_144, 1152, 26, 4, 1, 6912, 32_768),
    "qwen2.5-0.5b": _published(
        "Qwen2.5 0.5B", 151_936, 896, 24, 14, 2, 4864, 32_768, attention_bias=True, **_qwen("Qwen2.5-0.5B")
    ),
    "qwen2.5-1.5b": _published(
        "Qwen2.5 1.5B", 151_936, 1536, 28, 12, 2, 8960, 131_072, attention_bias=True, **_qwen("Qwen2.5-1.5B")
    ),
    "qwen2.5-3b": _published(
        "Qwen2.5 3B", 151_936, 2048, 36, 16, 2, 11_008, 32_768, attention_bias=True, **_qwen("Qwen2.5-3B")
    ),
    "qwen2.5-7b": _published(
        "Qwen2.5 7B", 152_064, 3584, 28, 28, 4, 18_944, 131_072, attention_bias=True, **_qwen("Qwen2.5-7B", tied=False)
    ),
    "qwen3-0.6b": _published(
        "Qwen3 0.6B", 151_936, 1024, 28, 16, 8, 3072, 40_960, d_head=128, qk_norm=True, **_qwen("Qwen3-0.6B")
    ),
    "smollm2-135m": _published("SmolLM2 135M", 49_152, 576, 30, 9, 3, 1536, 8192, **_smollm2("135M", 100_000.0)),
    "smollm2-360m": _published("SmolLM2 360M", 49_152, 960, 32, 15, 5, 2560, 8192, **_smollm2("360M", 100_000.0)),
    "smollm2-1.7b": _published("SmolLM2 1.7B", 49_152, 2048, 24, 32, 32, 8192, 8192, **_smollm2("1.7B", 130_000.0)),
}
