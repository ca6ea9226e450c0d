"""How inference engines reshape a distribution: their stages, order, defaults and boundary rules, as data.

The same knobs give different distributions in different engines. Each preset follows its engine's rules in float64;
where the engine computes in float32, a token within a rounding error of a boundary can fall on the other side there
(ten equal logits under top_p 0.1 keep two tokens in transformers, where exactly one is right). That is an artefact of
the engine's arithmetic and not a rule, so it is not reproduced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from lmcore.sampling.settings import OFF, Rules, SamplingSettings

__all__ = ["ENGINES", "Engine", "preset"]


@dataclass(frozen=True, kw_only=True)
class Engine:
    """One engine's sampler.

    Attributes:
        name: What `preset` calls it.
        title: What a page calls it.
        order: The stages it has, of those known here, in the order it runs them.
        defaults: Its defaults where they are not off.
        rules: Its boundary rules.
        does: What it does, one sentence each.
        source: Where that was learnt.
        assumed: Whether the engine's documentation leaves it open, so that this is a guess.
        off: Field -> which values beyond those of `SamplingSettings` the engine takes to mean off.
        penalty_window: Whether `penalty_last_n` is one of its knobs.
    """

    name: str
    title: str
    order: tuple[str, ...]
    defaults: Mapping[str, Any]
    rules: Rules
    does: tuple[str, ...]
    source: str
    assumed: bool = False
    off: Mapping[str, Callable[[float], bool]]
    penalty_window: bool = False

    @property
    def knobs(self) -> tuple[str, ...]:
        """The fields of `SamplingSettings` that this engine has."""
        return (*self.order, *(["penalty_last_n"] if self.penalty_window else []), "seed")


def _at_least_one(p: float) -> bool:
    return p >= 1


def _at_most_zero(value: float) -> bool:
    return value <= 0


def _outside_zero_one(p: float) -> bool:
    return p <= 0 or p >= 1


_LLAMA_CPP_RULES = Rules(typical_boundary="exceed")
_LLAMA_CPP_OFF = {
    "top_k": _at_most_zero,
    "top_p": _at_least_one,
    "min_p": _at_most_zero,
    "typical_p": _at_least_one,
    "top_n_sigma": _at_most_zero,
}
_LLAMA_CPP_DOES = (
    "Temperature runs last: top-k, typical, top-p and min-p see the logits as they came.",
    "Top-k keeps exactly k; which of equal tokens stay is unspecified there, the lowest ids here.",
    "Top-p stops at the token that brings the sum to p or more; that token stays.",
    "Typical stops once the sum is more than p; that token stays.",
    "Penalties look at the latest 64 tokens, of the prompt and of what was generated.",
    "Temperature 0 keeps the most probable token; the first one wins.",
)

ENGINES: Mapping[str, Engine] = {
    engine.name: engine
    for engine in (
        Engine(
            name="transformers",
            title="Hugging Face transformers 5",
            order=(
                "logit_bias",
                "repetition_penalty",
                "temperature",
                "top_k",
                "top_p",
                "min_p",
                "typical_p",
                "epsilon_cutoff",
                "eta_cutoff",
            ),
            defaults={"top_k": 50},
            rules=Rules(top_k_ties="all", top_p_ties="highest", typical_ties="all", zero_temperature="error"),
            does=(
                "Top-k is 50 unless set.",
                "The repetition penalty counts the prompt and what was generated.",
                "Temperature runs before the filters, each of which sees what the one before left, renormalised.",
                "Top-k keeps every token equal to the k-th, so more than k can stay.",
                "Top-p removes by rising probability while the sum is at most 1 - p; the crossing token stays.",
                "Which of equal tokens stay at the top-p boundary is unspecified there; the higher ids here, as it "
                "sorts in rising order.",
                "Typical keeps every token as typical as the last.",
                "Temperature 0 is an error when sampling.",
                "It has no presence or frequency penalty.",
            ),
            source="run: the logits processors of transformers 5.24",
            off={"top_p": _at_least_one},
        ),
        Engine(
            name="vllm",
            title="vLLM v1",
            order=(
                "logit_bias",
                "repetition_penalty",
                "frequency_penalty",
                "presence_penalty",
                "temperature",
                "min_p",
                "top_k",
                "top_p",
            ),
            defaults={},
            rules=Rules(
                top_k_ties="all",
                top_k_beyond_vocab="off",
                top_p_ties="highest",
                additive_penalties_count="generated",
                greedy_below=1e-5,
            ),
            does=(
                "Min-p runs before top-k and top-p.",
                "The repetition penalty counts the prompt and what was generated; presence and frequency count only "
                "what was generated.",
                "Top-k keeps every token equal to the k-th (PyTorch path; its Triton kernel keeps exactly k).",
                "Top-p removes by rising probability while the sum is at most 1 - p; the crossing token stays, and of "
                "equal ones the higher ids.",
                "A temperature below 0.00001 is greedy.",
            ),
            source="read: vllm/v1/sample and vllm/v1/sample/ops/topk_topp_sampler.py",
            off={"top_k": _at_most_zero},
        ),
        Engine(
            name="llama.cpp",
            title="llama.cpp",
            order=(
                "logit_bias",
                "repetition_penalty",
                "frequency_penalty",
                "presence_penalty",
                "top_n_sigma",
                "top_k",
                "typical_p",
                "top_p",
                "min_p",
                "temperature",
            ),
            defaults={"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "penalty_last_n": 64},
            rules=_LLAMA_CPP_RULES,
            does=(*_LLAMA_CPP_DOES, "Its DRY and XTC stages are off by default and are not offered here."),
            source="read: src/llama-sampler.cpp and common/sampling.cpp; run through llama-cpp-python 0.3.36",
            off=_LLAMA_CPP_OFF,
            penalty_window=True,
        ),
        Engine(
            name="ollama",
            title="Ollama (GGUF models)",
            order=(
                "repetition_penalty",
                "frequency_penalty",
                "presence_penalty",
                "top_k",
                "typical_p",
                "top_p",
                "min_p",
                "temperature",
            ),
            defaults={
                "temperature": 0.8,
                "top_k": 40,
                "top_p": 0.9,
                "repetition_penalty": 1.1,
                "penalty_last_n": 64,
            },
            rules=_LLAMA_CPP_RULES,
            does=("It samples with llama.cpp under defaults of its own.", *_LLAMA_CPP_DOES),
            source="read: api/types.go of Ollama, and llama.cpp as above",
            off=_LLAMA_CPP_OFF,
            penalty_window=True,
        ),
        Engine(
            name="exllamav2",
            title="exllamav2",
            order=(
                "repetition_penalty",
                "frequency_penalty",
                "presence_penalty",
                "logit_bias",
                "temperature",
                "top_k",
                "top_p",
                "min_p",
                "typical_p",
            ),
            defaults={"temperature": 0.8, "top_k": 50, "top_p": 0.8, "repetition_penalty": 1.025},
            rules=Rules(
                top_k_beyond_vocab="off",
                top_p_boundary="crossing dropped",
                typical_boundary="dropped",
                typical_score="exllamav2",
                greedy_below=0.01,
            ),
            does=(
                "Top-k keeps exactly k; which of equal tokens stay depends on their order there, the lowest ids here.",
                "Top-p drops the crossing token; a less probable one can still fit, so the kept set can have a hole.",
                "Without a top-k it visits the tokens by id, and what top-p keeps depends on that order.",
                "Top-p never keeps a token less probable than 0.000001, unless it is the only one.",
                "Typical drops the crossing token and adds the probability itself to the log-probability.",
                "Penalties count the prompt and what was generated.",
                "A temperature below 0.01 is greedy.",
                "Its top-a and tail-free stages are off by default and are not offered here.",
            ),
            source="read: generator/sampler.py and exllamav2_ext/cpp/sampling.cpp",
            off={
                "top_k": _at_most_zero,
                "top_p": _outside_zero_one,
                "min_p": _outside_zero_one,
                "typical_p": _outside_zero_one,
            },
            penalty_window=True,
        ),
        Engine(
            name="openai",
            title="OpenAI API (assumed)",
            order=("logit_bias", "frequency_penalty", "presence_penalty", "temperature", "top_p"),
            defaults={},
            rules=Rules(additive_penalties_count="generated"),
            does=(
                "Order and boundary are not documented: temperature before top-p, and the crossing token kept, are "
                "assumed.",
                "There is no top-k, min-p or repetition penalty.",
                "Presence and frequency count only what was generated (assumed).",
                "Temperature 0 is documented as near greedy; greedy is assumed.",
                "The API takes temperatures up to 2 and penalties from -2 to 2; wider values are computed here.",
            ),
            source="assumed: the API reference names the knobs, not the order or the boundary",
            assumed=True,
            off={},
        ),
    )
}
"""Engine name -> what is known of it."""


def preset(name: str, **overrides: Any) -> SamplingSettings:
    """The settings of an engine: its order, rules and defaults, under the knobs given.

    Args:
        name: "transformers", "vllm", "llama.cpp", "ollama", "exllamav2" or "openai".
        **overrides: Fields of `SamplingSettings`. None, or a value the engine takes to mean off (top_k -1 in vLLM),
            turns a knob off. One the engine does not have is left out and named in `.ignored`.

    Returns:
        Settings with `.engine` set to the name.

    Raises:
        ValueError: no such engine; no such field; a value out of range (see `SamplingSettings`).

    >>> preset("llama.cpp", temperature=1.5, top_k=3, top_p=0.9).active
    ('top_k', 'top_p', 'min_p', 'temperature')
    >>> preset("openai", top_k=3).ignored
    ('top_k',)
    """
    if name not in ENGINES:
        raise ValueError(f"name is {name!r}; there are presets for {', '.join(ENGINES)}.")
    engine = ENGINES[name]
    known = {field.name for field in fields(SamplingSettings)} - {"engine", "ignored"}
    values: dict[str, Any] = dict(engine.defaults)
    ignored = []
    for field, value in overrides.items():
        if field not in known:
            raise ValueError(f"{field} is not a sampling setting; the settings are {', '.join(sorted(known))}.")
        off = OFF.get(field)
        if value is None or (field in engine.off and _is_off(engine.off[field], value)):
            value = off
        if field in engine.knobs or field in ("order", "rules"):
            values[field] = value
        elif value and value != off:  # what is off there anyway is not missed
            ignored.append(field)
    values = {"order": engine.order, "rules": engine.rules, **values}
    return SamplingSettings(**values, engine=name, ignored=tuple(ignored))


def _is_off(is_off: Callable[[float], bool], value: Any) -> bool:
    """Ask an engine's rule about a value; what is not a number is left to SamplingSettings to refuse."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and is_off(value)
