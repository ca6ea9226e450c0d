"""What the interface of each inference server calls its knobs: the fields it reads, and what it does with others.

Read in the sources of the versions that the presets name (`lmcore/sampling/presets/`); TGI at db931fcf.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lmcore.sampling import PRESETS, Preset

__all__ = ["ALIASES", "SERVERS", "Server"]

_OPENAI = ("temperature", "top_p", "frequency_penalty", "presence_penalty", "logit_bias", "seed")
_WITH_FILTERS = (*_OPENAI, "top_k", "min_p", "repetition_penalty")
_CHAT = (
    *("model", "messages", "prompt", "stream", "stream_options", "n", "stop", "user", "max_tokens", "logprobs"),
    *("max_completion_tokens", "top_logprobs", "echo", "suffix", "best_of", "tools", "tool_choice", "response_format"),
    *("parallel_tool_calls", "reasoning_effort"),
)


@dataclass(frozen=True, kw_only=True)
class Server:
    """One route of one server.

    Attributes:
        name: What `read` and `write` call it.
        title: What a page calls it.
        preset: The name of its preset in `lmcore.sampling.PRESETS`.
        path: Where a request is sent, below the server's address.
        knobs: Field of the body -> setting. Of several fields for one setting the first is written.
        reads: Other fields it reads; they leave the distribution as it is, or say what is generated from.
        inside: The object of the body that holds the knobs; "" where they stand in the body itself.
        prompt: The field a plain prompt stands in.
        refuses: Whether a field it does not know is an error; else it is ignored.
        always: Settings that are written even when they are off, because a model's file may fill them.
        off: Setting -> how off is written, where the setting's own off value is none of the server's.
        not_computed: Field it reads -> why the explorer leaves it out.
    """

    name: str
    title: str
    preset: str
    path: str
    knobs: Mapping[str, str]
    reads: tuple[str, ...]
    inside: str = ""
    prompt: str = "prompt"
    refuses: bool = False
    always: tuple[str, ...] = ()
    off: Mapping[str, Any] = field(default_factory=dict)
    not_computed: Mapping[str, str] = field(default_factory=dict)

    @property
    def sampler(self) -> Preset:
        """Its sampler."""
        return PRESETS[self.preset]

    def field_of(self, setting: str) -> str | None:
        """Return what it calls a setting; None where it has none."""
        return next((name for name, known in self.knobs.items() if known == setting), None)


def _same(names: tuple[str, ...]) -> dict[str, str]:
    return {name: name for name in names}


_LLAMA = {
    **_same(("temperature", "top_k", "top_p", "min_p", "top_n_sigma", "typical_p", "xtc_probability", "xtc_threshold")),
    **{"repeat_penalty": "repetition_penalty", "repeat_last_n": "penalty_last_n"},
    **_same(("presence_penalty", "frequency_penalty", "dynatemp_range", "dynatemp_exponent")),
    **_same(("dry_multiplier", "dry_base", "dry_allowed_length", "dry_penalty_last_n")),
    **_same(("mirostat", "mirostat_tau", "mirostat_eta", "adaptive_target", "adaptive_decay", "logit_bias", "seed")),
}
_OLLAMA = {
    **_same(("temperature", "top_k", "top_p", "min_p", "typical_p")),
    **{"repeat_penalty": "repetition_penalty", "repeat_last_n": "penalty_last_n"},
    **_same(("presence_penalty", "frequency_penalty", "seed")),
}
_FILLED = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
_SHARE = "TGI subtracts the penalty times a token's share of the text, not times its count; that is not computed here."

_ALL = (
    Server(
        name="openai",
        title="OpenAI",
        preset="openai",
        path="/v1/chat/completions",
        knobs=_same(_OPENAI),
        reads=(
            *_CHAT,
            "store",
            "metadata",
            "service_tier",
            "modalities",
            "prediction",
            "verbosity",
            "safety_identifier",
        ),
        refuses=True,
    ),
    Server(
        name="vllm",
        title="vLLM",
        preset="vllm",
        path="/v1/completions",
        knobs=_same(_WITH_FILTERS),
        reads=(
            *_CHAT,
            *("stop_token_ids", "include_stop_str_in_output", "ignore_eos", "min_tokens", "skip_special_tokens"),
            *("spaces_between_special_tokens", "truncate_prompt_tokens", "prompt_logprobs", "add_generation_prompt"),
            *("continue_final_message", "add_special_tokens", "documents", "chat_template", "chat_template_kwargs"),
            *("priority", "request_id", "return_tokens_as_token_ids", "return_token_ids", "cache_salt", "vllm_xargs"),
            *("kv_transfer_params", "use_beam_search", "length_penalty", "include_reasoning", "prompt_embeds"),
        ),
        always=_FILLED,
        off={"top_k": 0},
        not_computed={
            **dict.fromkeys(
                ("allowed_token_ids", "bad_words"), "It limits what can be drawn; that is not computed here."
            ),
            "structured_outputs": "It limits what can be drawn; that is not computed here.",
        },
    ),
    Server(
        name="sglang",
        title="SGLang",
        preset="sglang",
        path="/v1/completions",
        knobs=_same(_WITH_FILTERS),
        reads=(
            *_CHAT,
            *("stop_token_ids", "stop_regex", "no_stop_trim", "ignore_eos", "min_tokens", "skip_special_tokens"),
            *("continue_final_message", "chat_template_kwargs", "separate_reasoning", "stream_reasoning", "lora_path"),
            *("session_params", "return_hidden_states", "rid", "priority", "extra_key", "custom_params"),
        ),
        always=_FILLED,
        off={"top_k": -1},
        not_computed=dict.fromkeys(
            ("regex", "json_schema", "ebnf"), "It limits what can be drawn; that is not computed here."
        ),
    ),
    Server(
        name="llama-server",
        title="llama-server",
        preset="llama.cpp",
        path="/completion",
        knobs=_LLAMA,
        reads=(
            *_CHAT,
            *("n_predict", "n_probs", "min_keep", "n_keep", "n_discard", "n_indent", "t_max_predict_ms", "ignore_eos"),
            *("cache_prompt", "id_slot", "return_tokens", "samplers", "post_sampling_probs", "timings_per_token"),
            *("response_fields", "lora", "return_progress", "add_generation_prompt", "chat_template_kwargs"),
            *("reasoning_format", "reasoning_budget", "parse_tool_calls"),
        ),
        always=_FILLED,
        off={"top_k": 0, "top_n_sigma": -1},
        not_computed={
            **dict.fromkeys(("grammar", "json_schema"), "It limits what can be drawn; that is not computed here."),
            "dry_sequence_breakers": "They are texts there and token ids here: set them in the lab.",
        },
    ),
    Server(
        name="ollama",
        title="Ollama, /api",
        preset="ollama",
        path="/api/generate",
        knobs=_OLLAMA,
        reads=(
            *("model", "prompt", "messages", "system", "template", "context", "stream", "raw", "keep_alive", "suffix"),
            *("images", "think", "tools", "num_ctx", "num_keep", "num_predict", "num_batch", "num_gpu", "main_gpu"),
            *("use_mmap", "num_thread", "stop", "options", "logprobs", "top_logprobs", "truncate", "shift"),
        ),
        inside="options",
        always=_FILLED,
        off={"top_k": 0},
        not_computed={"format": "It limits what can be drawn; that is not computed here."},
    ),
    Server(
        name="ollama-v1",
        title="Ollama, /v1",
        preset="ollama-v1",
        path="/v1/completions",
        knobs=_same(("temperature", "top_p", "frequency_penalty", "presence_penalty", "seed")),
        reads=tuple(name for name in _CHAT if name not in ("user", "best_of", "n", "parallel_tool_calls")),
    ),
    Server(
        name="tgi",
        title="TGI, /generate",
        preset="tgi",
        path="/generate",
        knobs=_same(("temperature", "repetition_penalty", "top_k", "top_p", "typical_p", "seed")),
        reads=(
            *("inputs", "parameters", "stream", "add_special_tokens", "best_of", "do_sample", "max_new_tokens"),
            *("return_full_text", "stop", "truncate", "details", "decoder_input_details", "top_n_tokens", "adapter_id"),
        ),
        inside="parameters",
        prompt="inputs",
        not_computed={
            "frequency_penalty": _SHARE,
            "watermark": "It changes the logits by a secret list of tokens; that is not computed here.",
            "grammar": "It limits what can be drawn; that is not computed here.",
        },
    ),
    Server(
        name="tgi-v1",
        title="TGI, /v1",
        preset="tgi",
        path="/v1/completions",
        knobs=_same(("temperature", "top_p", "seed")),
        reads=(*(name for name in _CHAT if name not in ("user", "best_of")), "tool_prompt"),
        not_computed={
            "frequency_penalty": _SHARE,
            "presence_penalty": "TGI makes a repetition penalty of 2 more than it; that is not computed here.",
            "logit_bias": "TGI takes it and does nothing with it.",
        },
    ),
)
SERVERS: Mapping[str, Server] = {each.name: each for each in _ALL}
"""Name -> what its interface reads."""

ALIASES: Mapping[str, str] = {
    **{name: setting for each in reversed(_ALL) for name, setting in each.knobs.items()},
    **{
        "temp": "temperature",
        "rep_pen": "repetition_penalty",
        "rep_pen_range": "penalty_last_n",
        "typical": "typical_p",
    },
    **{"typ_p": "typical_p", "tfs": "tfs_z", "topK": "top_k", "topP": "top_p", "minP": "min_p"},
    **{"penalty_repeat": "repetition_penalty", "penalty_last_n": "penalty_last_n", "tfs_z": "tfs_z", "top_a": "top_a"},
    **{"repetition_penalty_range": "penalty_last_n", "smoothing_factor": "smoothing_factor"},
    **{"epsilon_cutoff": "epsilon_cutoff", "eta_cutoff": "eta_cutoff"},
}
"""What some server or program calls a setting -> the setting."""
