"""The tokenization page as its tests open and read it."""

import contextlib
import io
import json
from pathlib import Path

import tokenizers
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).parents[3]
REFERENCE = tokenizers.Tokenizer.from_file(str(ROOT / "lmcore/builtin/tokenizer.json"))
REFERENCE.encode_special_tokens = True


def run(view: str = "tokens", **parameters: str) -> AppTest:
    """Open the page in a view, as a fresh visitor with this address."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    values = {"lang": "en", "prompt": "今天天气", "tokenization.view": view, **parameters}
    for name, value in values.items():
        app.query_params[name] = value
    app.switch_page("pages/stages/tokenization/page.py")
    app.run()
    assert not app.exception and not app.error
    return app


def part(app: AppTest, name: str) -> dict:
    """Return the data a live part was given."""
    for element in app.main:
        proto = getattr(element, "proto", None)
        if element.type == "bidi_component" and name in proto.component_name:
            return json.loads(proto.json) if proto.json else json.loads(proto.mixed.json)
    raise AssertionError(f"no {name} on the page: {[element.type for element in app.main]}")


def sentences(app: AppTest) -> str:
    return "\n".join(element.value for element in [*app.markdown, *app.info, *app.caption])


def last_snippet(app: AppTest) -> str:
    """Run the page's snippet and return what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(app.code[-1].value, "snippet", "exec"), {})
    return printed.getvalue()
