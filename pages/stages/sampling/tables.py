"""The numbers behind the lab's picture, computed by lmcore, and the Python that gives them again."""

from __future__ import annotations

import json
import math
from dataclasses import asdict

import pandas as pd
import torch

import lmcore
from lmcore import Reshaped, SamplingSettings
from lmcore.sampling import PRESETS
from pages.common.text import _, visible
from pages.live.sampling_lab.labels import stage_titles
from pages.stages.sampling import knobs
from pages.stages.sampling.sources import Source

MAX_ROWS = 1000
MAX_LIFTED = 50


def numbers(source: Source, result: Reshaped, n: int = MAX_ROWS) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the n most probable tokens with their probability after every stage, and each column's format.

    Above them stand those from further down that a bias or a penalty brought among the most probable. A token's text is
    made visible, and its bytes stand beside it for programs.
    """
    ids = lmcore.distribution.top(torch.from_numpy(source.logits), n).ids
    ids = torch.cat([_lifted(result, ids), ids])
    titles = stage_titles()
    texts = [source.token(token) for token in ids.tolist()]
    columns = {
        _("id"): ids.tolist(),
        _("Token"): [visible(text) for text in texts],
        _("logit"): source.logits[ids.numpy()],
        _("T = 1"): result.initial_probs[ids].tolist(),
    }
    formats = {_("logit"): "logit", _("T = 1"): "probability"}
    for number, step in enumerate(result.steps, start=1):
        name = f"{number} {titles[step.name]}"
        columns[name] = step.probs[ids].tolist()
        formats[name] = "probability"
    columns[_("final")] = result.probs[ids].tolist()
    formats[_("final")] = "probability"
    fates = {-1: "", -2: _("impossible")}
    fates.update({index: titles[step.name] for index, step in enumerate(result.steps)})
    columns[_("removed by")] = [fates[fate] for fate in result.removed_by[ids].tolist()]
    columns[_("bytes")] = [
        (text if isinstance(text, bytes) else text.encode("utf-8", "replace")).hex(" ") for text in texts
    ]
    return pd.DataFrame(columns), formats


def _lifted(result: Reshaped, shown: torch.Tensor) -> torch.Tensor:
    biased = torch.tensor([token for token, _amount in result.settings.logit_bias], dtype=torch.int64)
    now = lmcore.distribution.top(result.probs, MAX_LIFTED).ids
    lifted = torch.cat([now[result.probs[now] > 0], biased]).unique()
    lifted = lifted[~torch.isin(lifted, shown)]
    return lifted[torch.sort(result.probs[lifted], descending=True, stable=True).indices]


def as_json(frame: pd.DataFrame, settings: SamplingSettings, result: Reshaped) -> str:
    """Return the table, the settings and what each stage did, as JSON."""
    steps = [{"stage": s.name, "kept": s.kept, "removed_mass": s.removed_mass, "note": s.note} for s in result.steps]
    given = {**knobs.given(settings), "engine": settings.engine, "rules": asdict(settings.rules)}
    if "logit_bias" in given:
        # JSON has no infinity: a ban is the text "-inf".
        given["logit_bias"] = {
            str(token): amount if amount > -math.inf else "-inf" for token, amount in settings.logit_bias
        }
    summary = {name: getattr(result, name) for name in ("candidates", "entropy_bits", "removed_mass")}
    tokens = json.loads(frame.to_json(orient="records", double_precision=15))
    return json.dumps({"settings": given, "steps": steps, **summary, "tokens": tokens}, ensure_ascii=False, indent=1)


def snippet(source: Source, settings: SamplingSettings) -> str:
    """Return Python that gives the lab's numbers."""
    call = call_of(settings)
    return f"""
import lmcore

{source.code}
history = {source.history_code}
settings = {call}
result = lmcore.reshape(logits, settings, history)
for step in result.steps:
    print(step.name, step.kept, f"{{step.removed_mass:.4%}}", step.note)
print(result.candidates, f"{{result.entropy_bits:.3f}} bits", f"{{result.removed_mass:.4%}} removed")
best = lmcore.distribution.top(result.probs, 10)
for token_id, p in zip(best.ids.tolist(), best.values.tolist()):
    print(token_id, f"{{p:.4%}}")
"""


def call_of(settings: SamplingSettings) -> str:
    """Return Python that gives the settings."""
    if settings.engine in PRESETS:
        return f"lmcore.preset({', '.join([repr(settings.engine), *_overrides(settings)])})"
    return f"lmcore.SamplingSettings({', '.join(f'{n}={v!r}' for n, v in knobs.given(settings).items())})"


def _overrides(settings: SamplingSettings) -> list[str]:
    """Return the arguments of a preset: what is set, and None for each default of the engine that is off here."""
    given = knobs.given(settings)
    given.pop("rules", None)
    if settings.order == PRESETS[settings.engine].order:
        given.pop("order", None)
    defaults = {n: None for n in PRESETS[settings.engine].defaults if n not in given and not n.endswith("last_n")}
    return [f"{name}={value!r}" for name, value in {**given, **defaults}.items()]
