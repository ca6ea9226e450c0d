"""Scripts of the lab that are written from lmcore's declarations, so that the browser has no list of its own."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from lmcore.sampling import STAGES, Rules
from lmcore.sampling.registry import all_fields, all_stages

KERNELS = set(STAGES)
"""The stages that the lab's scripts compute themselves (KERNELS of reshape.js); lmcore computes registered ones."""


def scripts() -> dict[str, str]:
    """Return each script by its name below the lab's folder."""
    stages = {
        each.name: {
            "switches": each.switches or (each.fields[0].name,),
            "fields": [field.name for field in each.fields],
            "kind": each.kind,
        }
        for each in all_stages()
    }
    tables = {"OFF": {name: off(name) for name in all_fields()}, "STAGES": stages, "RULES": asdict(Rules())}
    lines = (f"export const {name} = {json.dumps(value, indent=2)};\n" for name, value in tables.items())
    return {"declared.js": "// Written from lmcore.sampling.\n" + "".join(lines)}


def off(name: str) -> Any:
    """Return the value of a field that nobody sets, as a slider can hold it: 0 where the settings have None.

    >>> off("top_k"), off("top_n_sigma"), off("top_p"), off("logit_bias")
    (0, 0.0, 1.0, {})
    """
    field = all_fields()[name]
    if field.off is None:
        return 0 if field.whole else 0.0
    if field.off == ():
        return {} if name == "logit_bias" else []
    return field.off
