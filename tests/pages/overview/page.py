"""The overview in an AppTest: what it is told, and what the reader does on it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).parents[3]


def open_overview(**parameters: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    for name, value in {"lang": "en", **parameters}.items():
        app.query_params[name] = value
    return app.run()


def component(app: AppTest, name: str) -> Any:
    return next(
        element.proto
        for element in app.main
        if element.type == "bidi_component" and element.proto.component_name == name
    )


def told(app: AppTest) -> dict[str, Any]:
    """Return what the scripts are given."""
    return json.loads(component(app, "explorer_overview").json)


def logits(app: AppTest) -> np.ndarray:
    """Return the logits that travel beside it, without the number at their end."""
    return np.frombuffer(component(app, "explorer_sampling_lab_channel").bytes[:-4], dtype="<f4")


def array(packed: dict[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed["numbers"]), dtype="<f4").reshape(packed["shape"])
