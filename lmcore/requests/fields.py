"""The fields of a request as one server reads them: its knobs, and a sentence on every other field."""

from __future__ import annotations

import difflib
import math
import re
import sys
from collections.abc import Mapping
from typing import Any

from lmcore.requests.servers import ALIASES, Server
from lmcore.sampling import Note, SamplingSettings, preset
from lmcore.sampling.presets import Refused
from lmcore.sampling.registry import get

__all__ = ["GREEDY", "MESSAGES", "NOTES", "PENALTIES", "Reader", "samples"]

UNKNOWN = "{server} has no field {field} and ignores it: it changes nothing."
UNKNOWN_REFUSED = "{server} has no field {field} and answers with an error."
OTHER_NAME = "{server} has no field {field} and ignores it: it changes nothing. There the same is called {right}."
OTHER_NAME_REFUSED = "{server} has no field {field} and answers with an error. There the same is called {right}."
CLOSE = "{server} has no field {field} and ignores it: it changes nothing. Is {right} meant?"
CLOSE_REFUSED = "{server} has no field {field} and answers with an error. Is {right} meant?"
OUTSIDE = "{server} reads {field} only inside {inside}; where it stands it is ignored and changes nothing."
KEY = "{field} looks like a key. It was left out and is kept nowhere."
NO_NUMBER = "{field} is not what {server} takes there, so it is left out."
NOT_COMPUTED = "{field}: {why}"
TEXT_BIAS = "logit_bias names a token by its text; give its id."
GREEDY = (
    "TGI is greedy unless do_sample, temperature, top_k, top_p or typical_p is sent; this request sends none of them."
)
REFUSES = "{server} refuses {field} = {value}: it takes a number, {allowed}."
ORDER = "samplers sets the order: {order}."
NO_SAMPLER = "samplers leaves no sampler that {server} knows: the draw is from the plain softmax, but for logit_bias."
MESSAGES = "Chat messages are joined plainly: the model's chat template is not applied."
NOTES = (
    *(UNKNOWN, UNKNOWN_REFUSED, OTHER_NAME, OTHER_NAME_REFUSED, CLOSE, CLOSE_REFUSED, OUTSIDE, KEY, NO_NUMBER),
    *(NOT_COMPUTED, TEXT_BIAS, GREEDY, ORDER, NO_SAMPLER, MESSAGES),
)
"""Every template of a remark."""

_SECRET = re.compile(r"api[-_]?key|authorization|access[-_]?token|secret|password|^key$|^token$", re.IGNORECASE)
PENALTIES = ("repetition_penalty", "frequency_penalty", "presence_penalty")
_SAMPLERS: dict[str, tuple[str, ...]] = {
    **{"penalties": PENALTIES, "typ_p": ("typical_p",)},
    **{name: (name,) for name in ("dry", "top_n_sigma", "top_k", "typical_p", "top_p", "min_p", "xtc", "temperature")},
    "adaptive_p": ("adaptive_p",),
}
"""What llama-server's `samplers` calls the stages."""
_ID = re.compile(r"[0-9]{1,18}")
_LETTERS = {"e": "penalties", "d": "dry", "s": "top_n_sigma", "k": "top_k", "y": "typ_p", "p": "top_p", "m": "min_p"}
_LETTERS.update({"x": "xtc", "t": "temperature", "a": "adaptive_p"})


class Reader:
    """Goes through the fields for one server; gathers the knobs it reads and remarks on the others."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.values: dict[str, Any] = {}
        self.remarks: list[Note] = []

    def note(self, template: str, **values: Any) -> None:
        """Add a remark."""
        self.remarks.append(Note(template, server=self.server.title, **values))

    def read(self, body: Mapping[str, Any]) -> None:
        """Go through all fields of a body."""
        server = self.server
        inner = body.get(server.inside) if server.inside else None
        for name, value in body.items():
            if name == server.inside:
                continue
            if server.inside and name in server.knobs:
                self.note(OUTSIDE, field=name, inside=server.inside)
            else:
                self._field(name, value, knobs=not server.inside)
        for name, value in inner.items() if isinstance(inner, dict) else ():
            self._field(name, value, knobs=True)

    def _field(self, name: str, value: Any, knobs: bool) -> None:
        server = self.server
        if _SECRET.search(name):
            self.note(KEY, field=name[:40])
        elif knobs and name in server.knobs:
            self._knob(name, value)
        elif name in server.not_computed:
            if value not in (None, 0, "", False, [], {}):
                self.note(NOT_COMPUTED, field=name, why=server.not_computed[name])
        elif name not in server.reads:
            self._unknown(name)

    def _unknown(self, name: str) -> None:
        server, refused = self.server, self.server.refuses
        right = server.field_of(ALIASES[name]) if name in ALIASES else None
        if right is not None:
            self.note(OTHER_NAME_REFUSED if refused else OTHER_NAME, field=name, right=right)
            return
        known = [*server.knobs, *server.reads]
        close = difflib.get_close_matches(name, known, 1, cutoff=0.75) if name not in ALIASES else []
        if close:
            self.note(CLOSE_REFUSED if refused else CLOSE, field=name[:60], right=close[0])
        else:
            self.note(UNKNOWN_REFUSED if refused else UNKNOWN, field=name[:60])

    def _knob(self, name: str, value: Any) -> None:
        setting = self.server.knobs[name]
        if value is None:
            return
        if setting == "logit_bias":
            self._bias(value)
        elif not _is_number(value):
            self.note(NO_NUMBER, field=name)
        elif setting == "seed":
            if 0 <= value < 2**64 and value == int(value):  # a negative one means any
                self.values[setting] = int(value)
        else:
            self.values[setting] = value

    def _bias(self, value: Any) -> None:
        pairs = value.items() if isinstance(value, dict) else value if isinstance(value, list) else ()
        bias: dict[int, float] = {}
        for pair in pairs:
            token, amount = pair if isinstance(pair, (list, tuple)) and len(pair) == 2 else ("", None)
            if not _ID.fullmatch(str(token)):
                self.note(TEXT_BIAS)
            elif amount is False:
                bias[int(str(token))] = -math.inf  # llama-server's ban
            elif amount is not None and (_is_number(amount) or amount == -math.inf):
                bias[int(str(token))] = float(amount)
        if bias:
            self.values["logit_bias"] = bias

    def settings(self, body: Mapping[str, Any]) -> tuple[SamplingSettings | None, str]:
        """Return what the server samples with, or None and its refusal."""
        server = self.server
        values = dict(self.values)
        if server.preset == "llama.cpp" and body.get("samplers") is not None:
            self._order(values, body["samplers"])
        if server.name == "tgi" and not samples(body):
            values["top_k"] = 1
        if server.name == "tgi-v1" and values.get("temperature") == 0:
            values = {**values, "temperature": None, "top_k": 1}  # greedy on this route
        try:
            for name, value in values.items():
                self._check_limit(name, value)
            return preset(server.preset, **values), ""
        except Refused as refused:
            shown = server.field_of(refused.field) or refused.field
            values = {"value": refused.value, "allowed": refused.allowed, "setting": refused.field}
            return None, Note(REFUSES, server=server.title, field=shown, **values)
        except ValueError as error:
            return None, f"{server.title}: {error}"

    def _check_limit(self, name: str, value: Any) -> None:
        """Refuse a value that says off in lmcore's way and not in the server's: TGI takes no top_p of 1."""
        sampler = self.server.sampler
        limit, is_off = sampler.limits.get(name), sampler.off.get(name)
        if limit is None or not isinstance(value, (int, float)) or (is_off is not None and is_off(value)):
            return
        if value not in limit:
            raise Refused(sampler, name, value, limit)

    def _order(self, values: dict[str, Any], samplers: Any) -> None:
        if isinstance(samplers, str):
            names = [_LETTERS.get(letter, "") for letter in samplers]
        elif isinstance(samplers, list):
            names = samplers  # an empty list leaves them all out
        else:
            self.note(NO_NUMBER, field="samplers")
            return
        if values.get("mirostat"):
            return  # which replaces them all
        stages = [stage for name in names if isinstance(name, str) for stage in _SAMPLERS.get(name, ())]
        order = tuple(dict.fromkeys(("logit_bias", *stages)))
        if stages:
            self.note(ORDER, order=", ".join(order[1:]))
        else:
            self.note(NO_SAMPLER)
        values["order"] = order
        left = set(order)
        for stage in self.server.sampler.order:
            if stage not in left:
                values.update(dict.fromkeys(self._fields_only_of(stage, left)))

    @staticmethod
    def _fields_only_of(stage: str, left: set[str]) -> list[str]:
        kept = {each.name for name in left for each in get(name).fields}
        return [each.name for each in get(stage).fields if each.name not in kept]


def _is_number(value: Any) -> bool:
    """Whether it is a number that float64 holds; JSON may also hold integers beyond it, which `isfinite` raises on."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return -sys.float_info.max <= value <= sys.float_info.max


def samples(body: Mapping[str, Any]) -> bool:
    """Whether TGI's own route samples on this body."""
    inner = body.get("parameters")
    asked = inner if isinstance(inner, dict) else {}
    return bool(asked.get("do_sample")) or any(
        asked.get(name) is not None for name in ("temperature", "top_k", "top_p", "typical_p")
    )
