"""The presets' models of transformers, on the meta device; and small configs of every kind."""

from __future__ import annotations

import transformers
from hypothesis import strategies as st
from torch import nn

from lmcore.config import ModelConfig


def gpt2(n_embd: int, n_layer: int, n_head: int, n_positions: int = 1024) -> nn.Module:
    config = transformers.GPT2Config(n_embd=n_embd, n_layer=n_layer, n_head=n_head, n_positions=n_positions)
    return transformers.GPT2LMHeadModel(config)


def llama_like(family: str, sizes: tuple[int, ...], tied: bool, **fields: int | list[str] | None) -> nn.Module:
    """Build the transformers model of a family from its sizes as config.json gives them."""
    names = (
        "vocab_size",
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "intermediate_size",
        "max_position_embeddings",
    )
    config_class = getattr(transformers, f"{family}TextConfig" if family == "Gemma3" else f"{family}Config")
    config = config_class(
        **dict(zip(names, sizes, strict=True)), tie_word_embeddings=tied, attn_implementation="eager", **fields
    )
    return getattr(transformers, f"{family}ForCausalLM")(config)


def gemma3(sizes: tuple[int, ...]) -> nn.Module:
    layers = ["full_attention" if (i + 1) % 6 == 0 else "sliding_attention" for i in range(sizes[2])]
    return llama_like("Gemma3", sizes, True, head_dim=256, sliding_window=512, layer_types=layers)


def t5(d_model: int, n_layers: int, n_heads: int, d_ff: int, feed_forward: str, tied: bool) -> nn.Module:
    config = transformers.T5Config(
        d_model=d_model,
        num_layers=n_layers,
        num_heads=n_heads,
        d_ff=d_ff,
        d_kv=64,
        feed_forward_proj=feed_forward,
    )
    model = transformers.T5ForConditionalGeneration(config)
    if not tied:  # transformers 5 ties every T5, whatever its config says
        model.lm_head = nn.Linear(d_model, config.vocab_size, bias=False)
    return model


# Typed from the released config files, in their own field names and apart from the presets.
PEERS = {
    "gpt2": lambda: gpt2(768, 12, 12),
    "gpt2-medium": lambda: gpt2(1024, 24, 16),
    "gpt2-large": lambda: gpt2(1280, 36, 20),
    "gpt2-xl": lambda: gpt2(1600, 48, 25),
    "gpt3-175b": lambda: gpt2(12288, 96, 96, 2048),
    "bert-base": lambda: transformers.BertModel(transformers.BertConfig()),
    "t5-small": lambda: t5(512, 6, 8, 2048, "relu", True),
    "t5-v1.1-small": lambda: t5(512, 8, 6, 1024, "gated-gelu", False),
    "llama-7b": lambda: llama_like("Llama", (32000, 4096, 32, 32, 32, 11008, 2048), False),
    "llama-13b": lambda: llama_like("Llama", (32000, 5120, 40, 40, 40, 13824, 2048), False),
    "llama-65b": lambda: llama_like("Llama", (32000, 8192, 80, 64, 64, 22016, 2048), False),
    "llama-2-7b": lambda: llama_like("Llama", (32000, 4096, 32, 32, 32, 11008, 4096), False),
    "llama-3-8b": lambda: llama_like("Llama", (128256, 4096, 32, 32, 8, 14336, 8192), False),
    "llama-3.2-1b": lambda: llama_like("Llama", (128256, 2048, 16, 32, 8, 8192, 131072), True, head_dim=64),
    "llama-3.2-3b": lambda: llama_like("Llama", (128256, 3072, 28, 24, 8, 8192, 131072), True, head_dim=128),
    "gemma-3-270m": lambda: gemma3((262144, 640, 18, 4, 1, 2048, 32768)),
    "gemma-3-1b": lambda: gemma3((262144, 1152, 26, 4, 1, 6912, 32768)),
    "qwen2.5-0.5b": lambda: llama_like("Qwen2", (151936, 896, 24, 14, 2, 4864, 32768), True),
    "qwen2.5-1.5b": lambda: llama_like("Qwen2", (151936, 1536, 28, 12, 2, 8960, 131072), True),
    "qwen2.5-3b": lambda: llama_like("Qwen2", (151936, 2048, 36, 16, 2, 11008, 32768), True),
    "qwen2.5-7b": lambda: llama_like("Qwen2", (152064, 3584, 28, 28, 4, 18944, 131072), False),
    "qwen3-0.6b": lambda: llama_like("Qwen3", (151936, 1024, 28, 16, 8, 3072, 40960), True, head_dim=128),
    "smollm2-135m": lambda: llama_like("Llama", (49152, 576, 30, 9, 3, 1536, 8192), True),
    "smollm2-360m": lambda: llama_like("Llama", (49152, 960, 32, 15, 5, 2560, 8192), True),
    "smollm2-1.7b": lambda: llama_like("Llama", (49152, 2048, 24, 32, 32, 8192, 8192), True),
}


@st.composite
def small_configs(draw: st.DrawFn) -> ModelConfig:
    """Draw configs of every kind that a model can be built from, few numbers in common between sizes."""
    n_kv_heads = draw(st.integers(1, 3))
    norm = draw(st.sampled_from(["rmsnorm", "layernorm"]))
    return ModelConfig(
        vocab_size=draw(st.integers(1, 23)),
        d_model=draw(st.integers(1, 13)),
        n_layers=draw(st.integers(1, 3)),
        n_heads=n_kv_heads * draw(st.integers(1, 3)),
        n_kv_heads=n_kv_heads,
        d_head=2 * draw(st.integers(1, 4)),
        d_mlp=draw(st.integers(1, 17)),
        context_length=draw(st.integers(6, 19)),
        norm=norm,
        norm_bias=norm == "layernorm" and draw(st.booleans()),
        gated_mlp=draw(st.booleans()),
        position_encoding=draw(st.sampled_from(["rope", "learned", "sinusoidal", "alibi", "relative", "none"])),
        relative_buckets=draw(st.integers(2, 9)),
        tie_embeddings=draw(st.booleans()),
        attention_bias=draw(st.booleans()),
        attention_out_bias=draw(st.booleans()),
        mlp_bias=draw(st.booleans()),
        head_bias=draw(st.booleans()),
    )
