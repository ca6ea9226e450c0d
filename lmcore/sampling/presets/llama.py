"""llama.cpp and the servers built on it: Ollama, koboldcpp."""

from __future__ import annotations

from dataclasses import replace

from lmcore.sampling.presets.declaration import Preset, at_least_one, at_most_zero, outside_zero_one, within_zero_one
from lmcore.sampling.rules import Rules
from lmcore.sampling.stage import Range

__all__ = ["KOBOLDCPP", "LLAMA_CPP", "OLLAMA", "OLLAMA_GO", "OLLAMA_MLX", "OLLAMA_V1"]

_RULES = Rules(typical_boundary="exceed", boundary_ulps=0.0)
_OFF = {
    "top_k": at_most_zero,
    "min_p": at_most_zero,
    "typical_p": at_least_one,
    "top_n_sigma": at_most_zero,
    "adaptive_target": lambda target: target < 0,
}
_READS = {"temperature": lambda t: max(t, 0.0), "top_p": within_zero_one, "min_p": within_zero_one}
_DOES = (
    "Temperature runs last: top-k, typical, top-p and min-p see the logits as they came.",
    "Top-k keeps exactly k; which of equal tokens stay is unspecified there, the lowest ids here.",
    "Top-p stops at the token that brings the sum to p or more; that token stays.",
    "Typical stops once the sum is more than p; that token stays.",
    "Penalties look at the latest 64 tokens, of the prompt and of what was generated; 0 turns them off, and a "
    "negative number is refused.",
    "Temperature 0 or less keeps the most probable token; the first one wins.",
)

LLAMA_CPP = Preset(
    name="llama.cpp",
    title="llama.cpp",
    version="0c1e57098",
    date="2026-10",
    order=(
        *("logit_bias", "repetition_penalty", "frequency_penalty", "presence_penalty", "dry", "top_n_sigma"),
        *("top_k", "typical_p", "top_p", "min_p", "xtc", "temperature", "mirostat", "adaptive_p"),
    ),
    defaults={
        **{"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05},
        **{"penalty_last_n": 64, "dry_penalty_last_n": 64},
    },
    rules=_RULES,
    does=(
        "llama-server's defaults; a GGUF file's general.sampling keys and the start flags come before them. An order "
        "that the file names (general.sampling.sequence) is not read here.",
        *_DOES,
        "Mirostat replaces every other stage but the bias and the temperature.",
        "DRY looks at the latest 64 tokens; its breakers are newline, colon, quote and star: give their ids.",
        "A grammar is tried after the draw, which is not computed here.",
    ),
    source="read: src/llama-sampler.cpp and common/sampling.cpp; run through llama-cpp-python 0.3.36",
    from_model=(
        *("temperature", "top_k", "top_p", "min_p", "xtc_probability", "xtc_threshold", "penalty_last_n"),
        *("repetition_penalty", "mirostat", "mirostat_tau", "mirostat_eta"),
    ),
    off=_OFF,
    limits={"penalty_last_n": Range(0), "dry_penalty_last_n": Range(0)},
    reads=_READS,
    penalty_window=True,
    lacks=(),
    alone={"mirostat": ("logit_bias", "temperature", "mirostat")},
    reports={"logprobs": "raw", "prob, post_sampling_probs": "final"},
)
OLLAMA = Preset(
    name="ollama",
    title="Ollama (GGUF), /api",
    version="fb3076099",
    date="2026-08-21",
    order=(
        *("repetition_penalty", "frequency_penalty", "presence_penalty"),
        *("top_k", "typical_p", "top_p", "min_p", "temperature"),
    ),
    defaults={"temperature": 0.8, "top_k": 40, "top_p": 0.9, "penalty_last_n": 64},
    rules=_RULES,
    does=(
        "It samples with llama.cpp under defaults of its own; the model's parameters layer comes before them.",
        "Its repeat penalty is 1.0, off, since 2026-08-11; it was 1.1 before.",
        *_DOES,
        "It has no DRY, top-n-sigma, XTC or mirostat.",
    ),
    source="read: api/types.go, server/routes.go and llm/llama_server.go of Ollama, and llama.cpp as above",
    off=_OFF,
    limits={"penalty_last_n": Range(0)},
    reads=_READS,
    penalty_window=True,
    reports={"logprobs": "raw"},
)
OLLAMA_V1 = replace(
    OLLAMA,
    name="ollama-v1",
    title="Ollama (GGUF), /v1",
    defaults={"top_k": 40, "penalty_last_n": 64},
    does=("Its OpenAI route sets temperature 1 and top-p 1 even when the request is silent.", *OLLAMA.does),
    source="read: openai/openai.go of Ollama, and as for its other route",
)
OLLAMA_MLX = Preset(
    name="ollama-mlx",
    title="Ollama (safetensors)",
    version="fb3076099",
    date="2026-08-21",
    order=(
        *("repetition_penalty", "presence_penalty", "frequency_penalty"),
        *("top_k", "temperature", "top_p", "min_p"),
    ),
    defaults=OLLAMA.defaults,
    rules=Rules(boundary_ulps=0.0),
    does=(
        "Models in safetensors are sampled by its own runner on MLX, under the defaults of its other route.",
        "Temperature runs after top-k and before top-p and min-p.",
        "Top-k keeps exactly k; which of equal tokens stay is unspecified there, the lowest ids here.",
        "Top-p keeps a token while the mass before it is less than p; 0 or less, and 1 or more, turn it off.",
        "Temperature 0 keeps the most probable token.",
    ),
    source="read: x/mlxrunner/sample/sample.go of Ollama",
    off={"top_k": at_most_zero, "top_p": outside_zero_one, "min_p": lambda m: m <= 0 or m > 1},
    penalty_window=True,
    reports={"logprobs": "raw"},
)
OLLAMA_GO = Preset(
    name="ollama-go",
    title="Ollama's Go sampler, until v0.30",
    version="before 9db4bdbad",
    date="2026-05-29",
    order=("top_k", "temperature", "top_p", "min_p"),
    defaults={"temperature": 0.8, "top_k": 40, "top_p": 0.9},
    rules=Rules(top_p_boundary="exceed", least_temperature=1e-7, boundary_ulps=0.0),
    does=(
        "Models on Ollama's own engine were sampled so until v0.30.0; since then llama-server samples all GGUF models.",
        "Top-k keeps exactly k; which of equal tokens stay depends on its heap there, the lowest ids here.",
        "Temperature runs after top-k and before top-p and min-p; above 0 it is at least 0.0000001.",
        "Top-p stops once the sum is more than p: at equality it keeps one more than other engines.",
        "It has no penalties: repeat_penalty and the like were accepted and changed nothing.",
        "A grammar is tried after the draw, which is not computed here.",
    ),
    source="read: sample/ of Ollama before its commit 9db4bdbad",
    off={"top_k": at_most_zero, "min_p": at_most_zero},
    reads=_READS,
)
KOBOLDCPP = Preset(
    name="koboldcpp",
    title="koboldcpp",
    version="1.115.1",
    date="2026-06-14",
    order=(
        *("logit_bias", "dry", "repetition_penalty", "presence_penalty", "top_k", "top_a", "tfs_z", "typical_p"),
        *("top_p", "min_p", "temperature", "top_n_sigma", "xtc", "mirostat", "adaptive_p"),
    ),
    defaults={
        **{"temperature": 0.7, "top_k": 100, "top_p": 0.9, "xtc_threshold": 0.2},
        **{"penalty_last_n": 320, "dry_penalty_last_n": 320},
    },
    rules=_RULES,
    does=(
        "A chat adapter may set temperature, top-k, top-p, min-p and the repetition penalty.",
        "Temperature runs after the filters, and top-n-sigma and XTC after the temperature.",
        "It first keeps the 3,000 most probable tokens, which is not computed here.",
        "Top-k keeps exactly k; which of equal tokens stay is unspecified there, the lowest ids here.",
        "Top-p stops at the token that brings the sum to p or more; that token stays.",
        "Penalties look at the latest 320 tokens, of the prompt and of what was generated.",
        "It has no frequency penalty: one that is sent stands in for the presence penalty where that is absent.",
        "DRY penalises breakers too, which is not computed here.",
        "Adaptive-p takes the model's own probability of what was drawn, and forces min-p 0.002 where no filter is on; "
        "neither is computed here.",
        "Mirostat runs after the penalties and the temperature, in place of the filters.",
        "Temperature 0 or less becomes top-k 1; here it keeps the most probable of what is left.",
    ),
    source="read: gpttype_adapter.cpp and koboldcpp.py of koboldcpp",
    off={**_OFF, "top_p": at_least_one, "adaptive_target": at_most_zero},
    reads={"temperature": lambda t: max(t, 0.0), "top_p": lambda p: max(p, 0.0)},
    penalty_window=True,
    lacks=(),
    alone={"mirostat": ("logit_bias", "repetition_penalty", "presence_penalty", "temperature", "mirostat")},
    reports={"logprobs, at least ln 0.0001": "final"},
)
