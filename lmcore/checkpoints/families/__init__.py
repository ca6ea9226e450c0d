"""The families whose folders are read, each a declaration."""

from __future__ import annotations

from collections.abc import Mapping

from lmcore.checkpoints.families.declaration import Family
from lmcore.checkpoints.families.experts import GPT_OSS, MIXTRAL, OLMOE, QWEN3_MOE
from lmcore.checkpoints.families.gemma import GEMMA2, GEMMA3
from lmcore.checkpoints.families.gpt import GPT2, GPT_NEOX
from lmcore.checkpoints.families.llama import (
    GRANITE,
    GRANITE4,
    LLAMA,
    MISTRAL,
    OLMO2,
    PHI3,
    QWEN2,
    QWEN3,
    SMOLLM3,
    STABLELM,
)

FAMILIES: Mapping[str, Family] = {
    "gpt2": GPT2,
    "gpt_neox": GPT_NEOX,
    "llama": LLAMA,
    "mistral": MISTRAL,
    "qwen2": QWEN2,
    "qwen3": QWEN3,
    "smollm3": SMOLLM3,
    "granite": GRANITE,
    "granitemoehybrid": GRANITE4,
    "olmo2": OLMO2,
    "phi3": PHI3,
    "stablelm": STABLELM,
    "gemma2": GEMMA2,
    "gemma3": GEMMA3,
    "gemma3_text": GEMMA3,
    "mixtral": MIXTRAL,
    "qwen3_moe": QWEN3_MOE,
    "olmoe": OLMOE,
    "gpt_oss": GPT_OSS,
}
"""`model_type` of config.json -> the family's declaration."""
