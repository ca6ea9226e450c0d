"""How inference engines reshape a distribution: their stages, order, defaults, limits and boundary rules, as data.

The same knobs give different distributions in different engines. Each preset follows its engine's rules in float64;
where the engine computes in float32, a token within a rounding error of a boundary can fall on the other side there
(ten equal logits under top_p 0.1 keep two tokens in transformers, where exactly one is right). That is an artefact of
the engine's arithmetic and not a rule, so it is not reproduced.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmcore.sampling.presets.declaration import Preset, Refused, settings_names
from lmcore.sampling.presets.exllama import EXLLAMAV2, EXLLAMAV3, TABBYAPI
from lmcore.sampling.presets.hosted import OPENAI
from lmcore.sampling.presets.llama import KOBOLDCPP, LLAMA_CPP, OLLAMA, OLLAMA_GO, OLLAMA_MLX, OLLAMA_V1
from lmcore.sampling.presets.python_engines import SGLANG, SGLANG_PYTORCH, TGI, TRANSFORMERS, VLLM, WEBUI
from lmcore.sampling.settings import SamplingSettings

__all__ = ["ENGINES", "PRESETS", "Engine", "Preset", "Refused", "preset"]

_ALL = (
    *(TRANSFORMERS, TGI, VLLM, SGLANG, SGLANG_PYTORCH, LLAMA_CPP),
    *(OLLAMA, OLLAMA_V1, OLLAMA_MLX, OLLAMA_GO),
    *(EXLLAMAV2, EXLLAMAV3, TABBYAPI, KOBOLDCPP, WEBUI, OPENAI),
)
PRESETS: Mapping[str, Preset] = {each.name: each for each in _ALL}
"""Engine name -> what is known of its sampler."""

ENGINES, Engine = PRESETS, Preset  # their old names


def preset(name: str, model: Mapping[str, Any] | None = None, **overrides: Any) -> SamplingSettings:
    """The settings of an engine: its order, rules and defaults, under the knobs given.

    Args:
        name: One of `PRESETS`: "transformers", "vllm", "llama.cpp", "ollama" ...
        model: The model's own settings, as its files have them (`lm.card.sampling`): taken before the engine's defaults
            where the engine does so, after what is given.
        **overrides: Fields of `SamplingSettings`. None, or a value the engine takes to mean off (top_k -1 in vLLM),
            turns a knob off. One the engine does not have is left out and named in `.ignored`.

    Returns:
        Settings with `.engine` set to the name.

    Raises:
        ValueError: no such engine; no such field; a value out of range (see `SamplingSettings`), or one that the
            engine's server refuses (`Refused`).

    >>> preset("llama.cpp", temperature=1.5, top_k=3, top_p=0.9).active
    ('top_k', 'top_p', 'min_p', 'temperature')
    >>> preset("openai", top_k=3).ignored
    ('top_k',)
    >>> preset("sglang", model={"temperature": 0.6}).temperature
    0.6
    """
    if name not in PRESETS:
        raise ValueError(f"name is {name!r}; there are presets for {', '.join(PRESETS)}.")
    known = settings_names()
    for field in overrides:
        if field not in known:
            raise ValueError(f"{field} is not a sampling setting; the settings are {', '.join(sorted(known))}.")
    return PRESETS[name].settings(overrides, model)
