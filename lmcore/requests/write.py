"""Write settings as a request for a server: exact where its sampler allows, else the nearest one that is found."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lmcore.distribution import total_variation
from lmcore.requests.fields import PENALTIES
from lmcore.requests.servers import SERVERS, Server
from lmcore.sampling import OFF, History, Reshaped, SamplingSettings, preset, reshape
from lmcore.sampling.registry import all_fields
from lmcore.sampling.registry import get as stage_of

__all__ = ["Written", "write"]

ALL_TOKENS = 8192  # how a window of all tokens is written for a server that wants a number
EQUAL = 1e-9  # a total variation distance up to this is rounding
_STEPS = {
    "temperature": (0.5, 0.2, 0.05, 0.01),
    "top_p": (0.3, 0.1, 0.03, 0.01),
    "min_p": (0.1, 0.03, 0.01, 0.003),
}
_BOUNDARY = {
    "top_k": ("top_k_ties",),
    "top_p": ("top_p_ties", "top_p_boundary", "top_p_joint"),
    "typical_p": ("typical_ties", "typical_boundary", "typical_score"),
    "repetition_penalty": ("repetition_penalty_counts",),
    "frequency_penalty": ("additive_penalties_count",),
    "presence_penalty": ("additive_penalties_count",),
    "temperature": ("greedy_below", "least_temperature", "zero_temperature"),
    "top_n_sigma": ("top_n_sigma_divisor",),
}
"""The rules that decide what a stage does; those of ties matter to equal logits at a boundary only."""
_SAMPLERS = {"typical_p": "typ_p", **dict.fromkeys(PENALTIES, "penalties")}


@dataclass(frozen=True)
class Written:
    """A request.

    Attributes:
        server: What it is for.
        body: Its knobs by the server's names, where they stand; nothing of the prompt.
        settings: What the server makes of it.
        is_exact: Whether it gives the same distribution at any position, but for equal logits at a boundary.
        distances: `[n]` float64, the total variation distance to the distribution asked for, at each position tried.
        was_searched: Whether the numbers are not those asked for but the nearest that were found.
    """

    server: Server
    body: Mapping[str, Any]
    settings: SamplingSettings
    is_exact: bool
    distances: Tensor
    was_searched: bool = False

    @property
    def is_equal(self) -> bool:
        """Whether it gives the same distribution at every position tried."""
        return bool((self.distances <= EQUAL).all())

    def request(self, prompt: str, model: str = "MODEL", messages: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
        """Return the whole body.

        Args:
            prompt: The prompt, sent as it is; as a user's message where the route takes messages alone.
            model: The model's name there.
            messages: What a chat template made the prompt of, sent in its place where the route takes messages.
        """
        start: dict[str, Any] = {} if self.server.name in ("tgi", "llama-server") else {"model": model}
        if "chat" in self.server.path:
            sent = [dict(each) for each in messages] or [{"role": "user", "content": prompt}]
            return {**start, "messages": sent, **self.body}
        if self.server.name == "ollama":
            start["raw"] = True  # else it puts the prompt into the model's chat template
        return {**start, self.server.prompt: prompt, **self.body}

    def curl(
        self,
        prompt: str,
        model: str = "MODEL",
        address: str = "http://localhost",
        messages: Sequence[Mapping[str, Any]] = (),
    ) -> str:
        """Return a curl line that sends it; a key is left to a variable of the shell."""
        body = shlex.quote(json.dumps(self.request(prompt, model, messages), ensure_ascii=False, indent=2))
        key = ' -H "Authorization: Bearer $API_KEY"' if "/v1/" in self.server.path else ""
        return f"curl {address}{self.server.path}{key} -H 'Content-Type: application/json' -d {body}"


def write(
    settings: SamplingSettings,
    server: str,
    logits: Sequence[Any],
    histories: Sequence[History] = (),
) -> Written:
    """Write settings for a server.

    The same numbers come first, in the server's own order where it can be told one. Where its rules or its order give
    another distribution at some position tried, temperature, top-p, min-p and top-k are moved one at a time, by ever
    smaller steps, to where the mean distance is least: a near request, not proven to be the nearest.

    Args:
        settings: The distribution asked for: `preset("transformers", ...)`, or settings of lmcore's own.
        server: One of `SERVERS`.
        logits: Of one or more positions to compare at, each `[V]`.
        histories: The tokens before each of them; none when left out.

    Raises:
        ValueError: no logits; as `reshape` where the settings do not fit them.

    >>> written = write(preset("vllm", temperature=0.7, top_p=0.9), "sglang", [[2.3, 1.5, 3.8, 0.5, 1.2]])
    >>> written.is_exact, written.body["top_p"]
    (True, 0.9)
    """
    if not len(logits):
        raise ValueError("logits is empty; give those of one position at least.")
    chosen = SERVERS[server]
    examples = list(zip(logits, histories or [History()] * len(logits), strict=True))
    wanted = [reshape(row, settings, history) for row, history in examples]
    values = _direct(settings, chosen)
    first = _settings(chosen, values)
    exact = _is_same(settings, first)
    distances = _distances(first, examples, wanted)
    searched = False
    if not exact and bool((distances > EQUAL).any()):
        better = _search(chosen, values, examples, wanted, float(distances.mean()))
        searched = better != values
        values = better
        first = _settings(chosen, values)
        distances = _distances(first, examples, wanted)
    return Written(chosen, _body(chosen, values, first), first, exact, distances, searched)


def _direct(settings: SamplingSettings, server: Server) -> dict[str, Any]:
    """Return the server's knobs with the same numbers; what is off here is off there."""
    values: dict[str, Any] = {}
    for name in dict.fromkeys(server.knobs.values()):
        value = settings.seed if name == "seed" else getattr(settings, name)
        values[name] = dict(settings.logit_bias) if name == "logit_bias" else value
    for name, family in (("penalty_last_n", "_penalty"), ("dry_penalty_last_n", "dry")):
        if not any(stage.endswith(family) for stage in settings.active):
            values.pop(name, None)  # nothing looks at it
        elif name in values and values[name] is None:
            values[name] = ALL_TOKENS
    if 0 < settings.temperature < settings.rules.greedy_below:
        values["temperature"] = 0.0
    if server.preset == "llama.cpp" and not settings.mirostat:
        stages = [name for name in settings.active if name in server.sampler.order]
        fixed = [name for name in server.sampler.order if name in stages]
        if stages != fixed:
            together = [each for name in stages for each in (PENALTIES if name in PENALTIES else (name,))]
            values["order"] = tuple(dict.fromkeys(("logit_bias", *together)))
    if server.preset == "tgi" and values["temperature"] == 0:
        values.update({"temperature": None, "top_k": 1})
    limits = server.sampler.limits
    for name, limit in limits.items():
        value = values.get(name)
        if isinstance(value, (int, float)) and value != OFF.get(name) and value not in limit:
            values[name] = _nearest_in(limit, value)
    return values


def _nearest_in(limit: Any, value: float) -> float:
    low, high = limit.low + (1e-3 if limit.low_open else 0), limit.high - (1e-3 if limit.high_open else 0)
    return min(max(value, low), high)


def _settings(server: Server, values: Mapping[str, Any]) -> SamplingSettings:
    known = {name: (None if value == OFF.get(name, ...) else value) for name, value in values.items()}
    order = known.get("order")
    if order is not None:
        kept = {field.name for name in order for field in stage_of(name).fields}
        known.update({name: None for name in server.sampler.defaults if name not in kept})
        known = {name: value for name, value in known.items() if value is not None or name in server.sampler.defaults}
    return preset(server.preset, **known)


def _is_same(asked: SamplingSettings, there: SamplingSettings) -> bool:
    """Whether the same stages run in the same order with the same numbers under the same rules, ties aside."""
    if asked.active != there.active:
        return False
    for name in asked.active:
        fields = [each.name for each in stage_of(name).fields if each.name != "penalty_last_n"]
        if any(getattr(asked, field) != getattr(there, field) for field in fields):
            return False
        rules = [rule for rule in _BOUNDARY.get(name, ()) if not rule.endswith("_ties")]
        if name == "top_p" and "top_k" not in asked.active:
            rules.remove("top_p_joint")
        if name == "temperature" and min(asked.temperature, there.temperature) > 0.01:
            rules = []
        if any(getattr(asked.rules, rule) != getattr(there.rules, rule) for rule in rules):
            return False
        if name.endswith("_penalty") and min(_window(asked), ALL_TOKENS) != min(_window(there), ALL_TOKENS):
            return False
    return True


def _window(settings: SamplingSettings) -> float:
    return math.inf if settings.penalty_last_n is None else settings.penalty_last_n


Example = tuple[Any, History]


def _distances(settings: SamplingSettings, examples: Sequence[Example], wanted: Sequence[Reshaped]) -> Tensor:
    found = [
        float(total_variation(reshape(row, settings, history).probs, aim.probs))
        for (row, history), aim in zip(examples, wanted, strict=True)
    ]
    return torch.tensor(found, dtype=torch.float64)


def _search(
    server: Server, values: dict[str, Any], examples: Sequence[Example], wanted: Sequence[Reshaped], best: float
) -> dict[str, Any]:
    """Move one knob at a time by ever smaller steps, from two beginnings, to where the mean distance is least."""

    def distance(tried: Mapping[str, Any]) -> float:
        try:
            return float(_distances(_settings(server, tried), examples, wanted).mean())
        except ValueError:
            return math.inf

    starts = [values]
    if "top_k" in values:  # as many as are left on the average, and nothing else that cuts
        count = round(sum(aim.candidates for aim in wanted) / len(wanted))
        off: dict[str, Any] = {name: OFF[name] for name in ("top_p", "min_p", "typical_p") if name in values}
        starts.append({**values, **off, "top_k": max(count, 1)})
    found, least = values, best
    for start in starts:
        now, current = start, best if start is values else distance(start)
        for level in range(4):
            for name in (name for name in (*_STEPS, "top_k") if now.get(name) is not None):
                for tried in _neighbours(name, now[name], level):
                    candidate = {**now, name: tried}
                    if (new := distance(candidate)) < current - EQUAL:
                        now, current = candidate, new
        if current < least - EQUAL:
            found, least = now, current
    return found


def _neighbours(name: str, value: Any, level: int) -> list[Any]:
    field = all_fields()[name]
    if name == "top_k":
        few = max(int(value * (0.4, 0.2, 0.1, 0.02)[level]), 1)
        return [max(value - few, 1), value + few]
    near = [round(value + sign * _STEPS[name][level], 6) for sign in (-1, 1)]
    return [number for number in near if number in field.range and not (name == "temperature" and number <= 0)]


def _body(server: Server, values: Mapping[str, Any], there: SamplingSettings) -> dict[str, Any]:
    """Return the knobs as the server names them, without those at a default that nothing else can move."""
    body: dict[str, Any] = {}
    defaults = server.sampler.defaults
    for name in dict.fromkeys(server.knobs.values()):
        value = values.get(name)
        is_off = value is None or value == OFF.get(name) or value == {}
        if name == "seed":
            if value is not None:
                body["seed"] = value
        elif name == "logit_bias":
            if value:
                body["logit_bias"] = _bias(server, value)
        elif name.endswith("last_n"):
            if value is not None:
                body[str(server.field_of(name))] = value
        elif not is_off or name in server.always or name in defaults:
            written = server.off.get(name, OFF[name]) if is_off else value
            if written is not None:
                body[str(server.field_of(name))] = written
    if "order" in values:
        stages = [name for name in values["order"] if name != "logit_bias"]
        body["samplers"] = list(dict.fromkeys(_SAMPLERS.get(name, name) for name in stages))
    if server.name == "tgi-v1" and values.get("top_k") == 1:
        body["temperature"] = 0  # greedy on this route
    if server.name == "tgi" and not {"temperature", "top_k", "top_p", "typical_p"} & body.keys():
        body["do_sample"] = True
    return {server.inside: body} if server.inside else body


def _bias(server: Server, bias: Mapping[int, float]) -> Any:
    if server.preset == "llama.cpp":
        return [[token, False if amount == -math.inf else amount] for token, amount in bias.items()]
    return {str(token): -100 if amount == -math.inf else amount for token, amount in bias.items()}
