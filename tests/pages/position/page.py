"""The position page as its tests open and read it."""

from __future__ import annotations

from pathlib import Path

from streamlit.testing.v1 import AppTest

import lmcore
from tests.pages import shown

ROOT = Path(__file__).parents[3]
ENCODINGS = {
    config.position_encoding: name for name, config in lmcore.builtin.configs().items() if config.tie_embeddings
}
FEW = {"position.windows": "16"}  # of held-out text, so that a run is short


def run(**parameters: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=300)
    for name, value in {"lang": "en", "prompt": "小明喜欢小红", **parameters}.items():
        app.query_params[name] = value
    app.run()
    app.switch_page("pages/stages/position/page.py")
    app.run()
    assert not app.exception, app.exception[0].message
    return app


def printed(app: AppTest) -> str:
    """Run the page's snippet and return what it prints."""
    return shown.printed(app.code[-1].value)
