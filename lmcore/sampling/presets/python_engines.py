"""Engines that run on PyTorch: transformers, vLLM, SGLang, text-generation-webui."""

from __future__ import annotations

from dataclasses import replace

from lmcore.sampling.presets.declaration import Preset, at_least_one, at_most_zero
from lmcore.sampling.rules import Rules
from lmcore.sampling.stage import Range

__all__ = ["SGLANG", "SGLANG_PYTORCH", "TGI", "TRANSFORMERS", "VLLM", "WEBUI"]

_OPENAI_PENALTIES = {"frequency_penalty": Range(-2, 2), "presence_penalty": Range(-2, 2)}
_SAID_BY_CONFIG = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")  # in generation_config.json
_UP_TO_ONE = Range(0, 1, low_open=True)

TRANSFORMERS = Preset(
    name="transformers",
    title="Hugging Face transformers 5",
    version="5.24.0",
    date="2026-11",
    order=(
        *("logit_bias", "repetition_penalty", "temperature", "top_h", "top_k", "top_p", "min_p"),
        *("typical_p", "epsilon_cutoff", "eta_cutoff"),
    ),
    defaults={"top_k": 50},
    rules=Rules(
        top_k_ties="all", top_p_ties="highest", typical_ties="all", zero_temperature="error", boundary_ulps=0.0
    ),
    does=(
        "It is greedy unless do_sample asks it to sample; these are its defaults when it samples.",
        "What the model's generation_config.json says comes before these defaults.",
        "Top-k is 50 unless set.",
        "The repetition penalty counts the prompt and what was generated.",
        "Temperature runs before the filters, each of which sees what the one before left, renormalised.",
        "Top-H looks at the 100 most probable tokens.",
        "Top-k keeps every token equal to the k-th, so more than k can stay.",
        "Top-p removes by rising probability while the sum is at most 1 - p; the crossing token stays.",
        "Which of equal tokens stay at the top-p boundary is unspecified there; the higher ids here, as it sorts in "
        "rising order.",
        "Typical keeps every token as typical as the last.",
        "Temperature 0 is an error when sampling; its server, transformers serve, turns sampling off.",
        "It has no presence or frequency penalty.",
    ),
    source="run: the logits processors of transformers 5.24",
    from_model=(*_SAID_BY_CONFIG, "typical_p", "top_h", "epsilon_cutoff", "eta_cutoff"),
    off={"top_p": at_least_one},
    reports={"output_logits": "raw", "output_scores": "final"},
)
VLLM = Preset(
    name="vllm",
    title="vLLM v1",
    version="0.33.0",
    date="2026-11-02",
    order=(
        *("logit_bias", "repetition_penalty", "frequency_penalty", "presence_penalty", "temperature"),
        *("min_p", "top_k", "top_p"),
    ),
    rules=Rules(
        top_k_ties="all",
        top_k_beyond_vocab="off",
        top_p_ties="highest",
        additive_penalties_count="generated",
        least_temperature=0.01,
        boundary_ulps=0.0,
    ),
    does=(
        "What the model's generation_config.json says comes before its defaults, unless --generation-config vllm.",
        "Min-p runs before top-k and top-p.",
        "The repetition penalty counts the prompt and what was generated; presence and frequency count only what was "
        "generated.",
        "Top-k keeps every token equal to the k-th on the CPU; its Triton kernel keeps exactly k.",
        "Top-p removes by rising probability while the sum is at most 1 - p; the crossing token stays, and of equal "
        "ones the higher ids. On CUDA without a seed FlashInfer keeps equal ones together.",
        "Temperature 0 is greedy; one above 0 and below 0.01 becomes 0.01; one above 2 is refused.",
        "Top-p 0 is refused, and so are presence and frequency outside -2 to 2.",
    ),
    source="read: sampling_params.py, v1/worker/gpu/sample and v1/sample/ops of vLLM",
    from_model=(*_SAID_BY_CONFIG, "presence_penalty", "frequency_penalty"),
    passes_over={"temperature": 1.0, "top_k": 50, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.0},
    off={"top_k": lambda k: k in (0, -1)},
    limits={"temperature": Range(0, 2), "top_p": _UP_TO_ONE, "min_p": Range(0, 1), **_OPENAI_PENALTIES},
    reports={"logprobs": "raw", "logprobs, --logprobs-mode processed_logprobs": "final"},
)
SGLANG = Preset(
    name="sglang",
    title="SGLang",
    version="0.5.23",
    date="2026-10",
    order=(
        *("frequency_penalty", "presence_penalty", "repetition_penalty", "logit_bias", "temperature"),
        *("top_k", "top_p", "min_p"),
    ),
    rules=Rules(
        top_k_ties="all",
        top_k_beyond_vocab="off",
        top_p_ties="all",
        top_p_joint="without min_p",
        repetition_penalty_counts="generated",
        additive_penalties_count="generated",
        greedy_below=1e-6,
        boundary_ulps=0.0,
    ),
    does=(
        "What the model's generation_config.json says comes before its defaults, unless --sampling-defaults openai; "
        "its completions route does not look there, and its responses route has temperature 0.7.",
        "Top-k and top-p are applied jointly: top-p looks at the whole vocabulary. With min-p on, or with "
        "speculation, top-p looks at what top-k left.",
        "Every penalty counts only what was generated; presence and frequency come before repetition, as with its "
        "overlap scheduling.",
        "Top-p keeps a token while the mass above it is less than p, so that equal ones stay together (FlashInfer).",
        "A temperature below 0.000001 is greedy.",
        "Top-k 0 and top-p 0 are refused; top-k -1 is off. Presence and frequency go from -2 to 2.",
    ),
    from_model=_SAID_BY_CONFIG,
    source="read: srt/layers/sampler.py, srt/sampling and entrypoints/openai/protocol.py of SGLang",
    off={"top_k": lambda k: k == -1},
    limits={"top_k": Range(1), "top_p": _UP_TO_ONE, "min_p": Range(0, 1), **_OPENAI_PENALTIES},
    reports={"logprobs": "heated", "logprobs, SGLANG_RETURN_ORIGINAL_LOGPROB": "edited"},
)
SGLANG_PYTORCH = replace(
    SGLANG,
    name="sglang-pytorch",
    title="SGLang, PyTorch backend",
    rules=replace(SGLANG.rules, top_k_ties="lowest", top_p_ties="lowest", top_p_boundary="exceed", top_p_joint="yes"),
    does=(
        "Its sampler where FlashInfer is not used (--sampling-backend pytorch); everything before it is the same.",
        "Top-k keeps exactly k; which of equal tokens stay is unspecified there, the lowest ids here.",
        "Top-p keeps a token while the mass before it is at most p, so at equality one more than elsewhere, and always "
        "looks at the whole vocabulary.",
        *(line for line in SGLANG.does if "FlashInfer" not in line and "jointly" not in line),
    ),
)
TGI = Preset(
    name="tgi",
    title="TGI",
    version="db931fcf",
    date="2026-01-08",
    order=("repetition_penalty", "temperature", "top_k", "top_p", "typical_p"),
    rules=Rules(
        top_k_ties="all", top_p_ties="highest", typical_ties="all", zero_temperature="error", boundary_ulps=0.0
    ),
    does=(
        "It is greedy unless do_sample, temperature, top_k, top_p or typical_p is sent; these are its defaults when it "
        "samples.",
        "The stages are those of transformers, in its order; ties are treated as there.",
        "Temperature 0, top-k 0, and a top-p or typical that is not between 0 and 1 are refused; its chat route takes "
        "temperature 0 as greedy.",
        "The repetition penalty counts the prompt and what was generated.",
        "Its frequency penalty subtracts a token's share of the text times the penalty, and its chat route makes a "
        "repetition penalty of a presence penalty: neither is computed here.",
        "It has no min-p, and does nothing with a logit bias.",
    ),
    source="read: router/src/validation.rs, router/src/lib.rs and server/text_generation_server/utils of TGI",
    limits={
        "temperature": Range(0, low_open=True),
        "top_k": Range(1),
        "top_p": Range(0, 1, low_open=True, high_open=True),
        "typical_p": Range(0, 1, low_open=True, high_open=True),
    },
)
WEBUI = Preset(
    name="text-generation-webui",
    title="text-generation-webui",
    version="1dcde41d0",
    date="2026-05-03",
    order=(
        *("logit_bias", "repetition_penalty", "presence_penalty", "frequency_penalty", "dry", "top_n_sigma"),
        *("temperature", "smoothing_factor", "top_k", "top_p", "typical_p", "epsilon_cutoff", "eta_cutoff"),
        *("tfs_z", "top_a", "min_p", "adaptive_p", "mirostat", "xtc"),
    ),
    defaults={"top_p": 0.95, "penalty_last_n": 1024, "dry_penalty_last_n": 1024},
    rules=Rules(
        top_k_ties="all",
        top_p_ties="highest",
        typical_ties="all",
        top_n_sigma_divisor="n - 1",
        boundary_ulps=0.0,
    ),
    does=(
        "Temperature runs before the filters, also when llama.cpp computes: it sends its order along.",
        "Penalties and DRY look at the latest 1,024 tokens; 0 is all of them.",
        "Rules at the boundaries are those of its loader; here those of its transformers loader.",
        "That loader's top-n-sigma divides by V - 1 and counts an impossible token's logit as 0; here by the number of "
        "candidates less 1.",
        "XTC is undone there where it would take away a newline or the end of the text, which is not computed here.",
        "Temperature 0 is an error in its transformers loader and the most probable token in the others.",
    ),
    source="read: modules/presets.py, shared.py, api/typing.py and sampler_hijack.py of text-generation-webui",
    off={
        "top_k": at_most_zero,
        "top_p": at_least_one,
        "penalty_last_n": at_most_zero,
        "adaptive_target": at_most_zero,
    },
    penalty_window=True,
    lacks=(),
    reports={"logprobs, llama.cpp loader": "raw"},
)
