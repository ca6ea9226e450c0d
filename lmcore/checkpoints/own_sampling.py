"""How a model's files say it should be sampled: generation_config.json, or a GGUF file's general.sampling keys."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

__all__ = ["from_generation_config", "from_gguf"]

_CONFIG = (
    *("temperature", "top_k", "top_p", "min_p", "typical_p", "top_h", "epsilon_cutoff", "eta_cutoff"),
    *("repetition_penalty", "presence_penalty", "frequency_penalty"),
)
_GGUF = {
    **{name: name for name in ("top_k", "top_p", "min_p", "xtc_probability", "xtc_threshold", "mirostat")},
    **{"temp": "temperature", "penalty_last_n": "penalty_last_n", "penalty_repeat": "repetition_penalty"},
    **{"mirostat_tau": "mirostat_tau", "mirostat_eta": "mirostat_eta"},
}


def from_generation_config(config: Mapping[str, Any]) -> dict[str, float]:
    """Return the sampler's settings in a generation_config.json; what is no number is left out.

    >>> from_generation_config({"temperature": 0.6, "top_k": 20, "do_sample": True, "top_p": None})
    {'temperature': 0.6, 'top_k': 20}
    """
    return {name: config[name] for name in _CONFIG if _is_number(config.get(name))}


def from_gguf(metadata: Mapping[str, Any]) -> dict[str, float]:
    """Return the sampler's settings in a GGUF file's metadata, by the names the explorer has for them.

    >>> from_gguf({"general.sampling.temp": 0.6, "general.sampling.penalty_repeat": 1.05})
    {'temperature': 0.6, 'repetition_penalty': 1.05}
    """
    told = {setting: metadata.get(f"general.sampling.{name}") for name, setting in _GGUF.items()}
    return {setting: _shortest(value) for setting, value in told.items() if _is_number(value)}


def _shortest(value: Any) -> Any:
    """Return a number of float32 as it was typed: 0.6, not 0.6000000238."""
    return float(f"{value:.7g}") if isinstance(value, float) else value


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return -sys.float_info.max <= value <= sys.float_info.max  # an integer may lie beyond what a float holds
