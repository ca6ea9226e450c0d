"""The sampling lab: a distribution reshaped in the browser, over the whole vocabulary, while a slider moves."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import streamlit as st

from lmcore.sampling import History, Reshaped, SamplingSettings
from pages.common.escape import visible
from pages.live.part import part
from pages.live.sampling_lab.engines import table as engine_table
from pages.live.sampling_lab.generated import KERNELS
from pages.live.sampling_lab.labels import labels, stages, translated_note

NO_HISTORY = History()
N_TEXTS = 400  # texts sent with the logits: of the most probable tokens, enough for the longest list of bars


def sampling_lab(
    logits: np.ndarray,
    texts: Callable[[int], bytes | str],
    settings: Mapping[str, Any],
    *,
    key: str,
    history: History = NO_HISTORY,
    result: Reshaped | None = None,
    model: Mapping[str, Any] | None = None,
    on_settings: Callable[[Any], None],
) -> None:
    """Show the lab; one on a page.

    The logits travel alone, as their own bytes, and only when they change; settings and texts are messages apart.

    Args:
        logits: [V] by id. float32 takes 4 bytes a token; float64 is for numbers that float32 would round.
        texts: the text of a token, by id; made visible here. Asked for a few hundred ids only.
        settings: the value of each field, and "engine", "order", "against", "bars", "log", "token", "pinned"; what the
            lab shows. A bias of -inf is the text "-inf". "answers": the last message of the lab's they follow from.
        key: unique on the page.
        history: ids of the tokens before this position, for the penalties.
        result: what lmcore makes of the settings, for stages that the lab's scripts do not compute themselves.
        model: the settings that the model's own files hold: part of an engine's defaults where it takes them.
        on_settings: called with settings as the reader left them, before the page runs again. They come from the
            browser: check them.
    """
    raw = np.ascontiguousarray(logits)
    data = raw.tobytes()
    chosen = [settings["token"]] if settings["token"] is not None and settings["token"] < len(raw) else []
    named = {*history.prompt, *history.generated, *map(int, settings["logit_bias"])}
    shown = sorted({*most_probable(raw, N_TEXTS), *named, *chosen})

    def told() -> None:
        on_settings(st.session_state[key].get("settings"))

    with st.container(gap=None):  # the channels take no room
        part("sampling_lab/channel")(key=f"{key}.logits", data=data, height=0)
        part("sampling_lab/channel")(key=f"{key}.settings", data=dict(settings), height=0)
        packed = pack(result) if result is not None and needs_server(result.settings) else None
        part("sampling_lab/channel")(
            key=f"{key}.result", data={"of": "result", "text": base64.b64encode(packed or b"").decode()}, height=0
        )
        part("sampling_lab/lab")(
            key=key,
            data={
                "crc": zlib.crc32(data),
                "float": 8 * raw.itemsize,
                "ids": shown,
                "texts": [visible(texts(token)) for token in shown],
                "history": {"prompt": list(history.prompt), "generated": list(history.generated)},
                "engines": engine_table(model),
                "stages": stages(len(raw)),
                "result": None if packed is None else zlib.crc32(packed),
                "labels": labels(),
            },
            on_settings_change=told,
        )


def most_probable(logits: np.ndarray, n: int) -> list[int]:
    """Ids of the n largest logits, in no particular order."""
    if n >= len(logits):
        return list(range(len(logits)))
    return np.argpartition(-logits, n)[:n].tolist()


def needs_server(settings: SamplingSettings) -> bool:
    """Whether a stage is on that the lab's scripts cannot compute."""
    return not set(settings.active) <= KERNELS


def pack(result: Reshaped) -> bytes:
    """Return a result as the lab's scripts read it: what was done as JSON, then probabilities and fates by id."""
    steps = [
        {
            "name": step.name,
            "before": len(step.before),
            "kept": step.kept,
            "removedMass": step.removed_mass,
            "note": translated_note(step.note),
        }
        for step in result.steps
    ]
    ways = [way.weight for way in result.ways]
    head = json.dumps({"steps": steps, "ways": ways}).encode()
    head += b" " * (-(len(head) + 8) % 8)
    size = len(head).to_bytes(8, "little")
    return size + head + result.probs.numpy().tobytes() + result.removed_by.numpy().astype(np.int8).tobytes()
