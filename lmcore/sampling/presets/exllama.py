"""The exllama engines."""

from __future__ import annotations

from lmcore.sampling.presets.declaration import Preset, at_most_zero, outside_zero_one
from lmcore.sampling.rules import Rules

__all__ = ["EXLLAMAV2", "EXLLAMAV3", "TABBYAPI"]

_V3_PENALTIES = ("logit_bias", "repetition_penalty", "presence_penalty", "frequency_penalty", "dry")

EXLLAMAV2 = Preset(
    name="exllamav2",
    title="exllamav2",
    version="0.3.2",
    date="2025-12-09",
    order=(
        *("repetition_penalty", "presence_penalty", "frequency_penalty", "logit_bias", "temperature"),
        *("top_k", "top_p", "top_a", "min_p", "tfs_z", "typical_p", "mirostat"),
    ),
    defaults={"temperature": 0.8, "top_k": 50, "top_p": 0.8, "repetition_penalty": 1.025},
    rules=Rules(
        top_k_beyond_vocab="off",
        top_p_boundary="crossing dropped",
        typical_boundary="dropped",
        typical_score="exllamav2",
        greedy_below=0.01,
        boundary_ulps=0.0,
    ),
    does=(
        "It has no server of its own; these are the defaults of its settings.",
        "Top-k keeps exactly k; which of equal tokens stay depends on their order there, the lowest ids here.",
        "Top-p drops the crossing token; a less probable one can still fit, so the kept set can have a hole.",
        "Without a top-k it visits the tokens by id, and what top-p keeps depends on that order.",
        "Top-p never keeps a token less probable than 0.000001, unless it is the only one.",
        "Typical drops the crossing token and adds the probability itself to the log-probability.",
        "Penalties count the prompt and what was generated; a window of -1 is all of them, 0 none.",
        "A temperature below 0.01 is greedy.",
        "Its mirostat is the second version, whatever is asked for, and looks at what the filters left.",
        "Its own DRY and XTC follow other rules and are not offered here.",
    ),
    source="read: generator/sampler.py and exllamav2_ext/cpp/sampling.cpp",
    off={
        "top_k": at_most_zero,
        "top_p": outside_zero_one,
        "min_p": outside_zero_one,
        "typical_p": outside_zero_one,
        "top_a": outside_zero_one,
        "tfs_z": outside_zero_one,
        "penalty_last_n": lambda n: n < 0,
    },
    reads={"mirostat": lambda version: 2},
    penalty_window=True,
    reports={"probability": "final"},
)
EXLLAMAV3 = Preset(
    name="exllamav3",
    title="exllamav3",
    version="1.6.5",
    date="2026-10",
    order=(*_V3_PENALTIES, "temperature", "min_p", "top_k", "top_p", "adaptive_p"),
    rules=Rules(top_k_beyond_vocab="off", boundary_ulps=0.0),
    does=(
        "When no sampler is given it uses temperature 0.8, last, and min-p 0.08.",
        "A sampler that is given runs temperature before the filters, and min-p before top-k and top-p.",
        "Top-k keeps exactly k step by step; its fused kernel keeps all equal ones.",
        "Top-p keeps a token while the mass before it is less than p.",
        "Temperature 0 and top-p 0 keep the most probable token.",
        "Penalties count the prompt and what was generated; how they fade with distance is not computed here.",
        "DRY looks at the whole context, and tokens with punctuation break it: give their ids.",
    ),
    source="read: generator/sampler/custom.py and presets.py of exllamav3",
    off={"top_k": lambda k: k < 1, "adaptive_target": lambda target: target == 1},
    silent={
        **{"temperature": 0.8, "min_p": 0.08},
        "order": (*_V3_PENALTIES, "min_p", "top_k", "top_p", "temperature", "adaptive_p"),
    },
    reports={"probability": "raw"},
)
TABBYAPI = Preset(
    name="tabbyapi",
    title="TabbyAPI (exllamav3)",
    version="e632af41e",
    date="2026-08-13",
    order=(
        *("repetition_penalty", "presence_penalty", "frequency_penalty", "logit_bias", "temperature"),
        *("top_k", "top_p", "min_p", "xtc", "adaptive_p"),
    ),
    rules=Rules(top_k_beyond_vocab="off", boundary_ulps=0.0),
    does=(
        "A silent request gets temperature 1 and no filter; its sample configuration loads a preset with temperature "
        "0.8 and top-p 0.9.",
        "What the model's generation_config.json says is not read.",
        "Temperature runs first, unless temperature_last is sent; then top-k, top-p and min-p.",
        "Top-p keeps a token while the mass before it is less than p.",
        "Temperature 0 and top-p 0 keep the most probable token.",
        "XTC draws no coin: it samples from the average of both outcomes, which is the mixture here. Newline and "
        "special tokens, which it protects, are not told apart here.",
        "Penalties count the prompt and what was generated; how they fade with distance is not computed here.",
        "DRY, typical and mirostat are accepted and ignored.",
    ),
    source="read: common/sampling.py and backends/exllamav3 of TabbyAPI",
    off={"top_k": lambda k: k < 1, "adaptive_target": lambda target: target == 1},
)
