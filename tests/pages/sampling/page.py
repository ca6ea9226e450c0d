"""The sampling page as its tests open and read it."""

import json
from pathlib import Path

import pandas as pd
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).parents[3]


def run(**parameters: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    for name, value in {"lang": "en", **parameters}.items():
        app.query_params[name] = value
    app.run()
    app.switch_page("pages/stages/sampling/page.py")
    app.run()
    assert not app.exception
    return app


def parts(app: AppTest) -> list[object]:
    """What the lab was given: logits, settings, and the rest, in the order they were mounted."""
    protos = [element.proto for element in app.get("bidi_component")]
    ours = [proto for proto in protos if "sampling" in proto.component_name]
    return [proto.bytes or json.loads(proto.json) for proto in ours]


def frame(app: AppTest, contains: str) -> pd.DataFrame:
    return next(table.value for table in app.dataframe if contains in table.value.columns)
