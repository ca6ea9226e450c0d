"""The numbers behind the lab's picture, computed by lmcore, and the Python that gives them again."""

from __future__ import annotations

import json

import pandas as pd
import torch

import lmcore
from lmcore import Reshaped, SamplingSettings
from pages.common.text import _, visible
from pages.live.sampling_lab.labels import stage_titles
from pages.stages.sampling import knobs
from pages.stages.sampling.sources import Source

MAX_ROWS = 1000


def numbers(source: Source, result: Reshaped) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the most probable tokens with their probability after every stage, and each column's format."""
    ids = lmcore.distribution.top(torch.from_numpy(source.logits), MAX_ROWS).ids
    titles = stage_titles()
    columns = {
        _("id"): ids.tolist(),
        _("Token"): [visible(source.token(token)) for token in ids.tolist()],
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
    return pd.DataFrame(columns), formats


def as_json(frame: pd.DataFrame, settings: SamplingSettings, result: Reshaped) -> str:
    """Return the table, the settings and what each stage did, as JSON."""
    steps = [{"stage": s.name, "kept": s.kept, "removed_mass": s.removed_mass, "note": s.note} for s in result.steps]
    given = knobs.given(settings)
    if "logit_bias" in given:
        given["logit_bias"] = {str(token): amount for token, amount in given["logit_bias"].items()}
    summary = {name: getattr(result, name) for name in ("candidates", "entropy_bits", "removed_mass")}
    tokens = json.loads(frame.to_json(orient="records", double_precision=15))
    return json.dumps({"settings": given, "steps": steps, **summary, "tokens": tokens}, ensure_ascii=False, indent=1)


def snippet(source: Source, settings: SamplingSettings) -> str:
    """Return Python that gives the lab's numbers."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in knobs.given(settings).items())
    arguments = arguments.replace("-inf", 'float("-inf")')
    return f"""
import lmcore

{source.code}
settings = lmcore.SamplingSettings({arguments})
result = lmcore.reshape(logits, settings, history)
for step in result.steps:
    print(step.name, step.kept, f"{{step.removed_mass:.4%}}", step.note)
print(result.candidates, f"{{result.entropy_bits:.3f}} bits", f"{{result.removed_mass:.4%}} removed")
best = lmcore.distribution.top(result.probs, 10)
for token_id, p in zip(best.ids.tolist(), best.values.tolist()):
    print(token_id, f"{{p:.4%}}")
"""
