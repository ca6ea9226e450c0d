"""The generation page as its tests open and read it."""

import contextlib
import io
import json
import time
from pathlib import Path

from streamlit.testing.v1 import AppTest

from lmcore.generation.run import GenerationRun

ROOT = Path(__file__).parents[3]
PROMPT = "今天天气"
SETTINGS = {"temperature": "0.8", "top_p": "0.9", "seed": "5", "max_new_tokens": "12", "pace": "0"}


def run(**parameters: str) -> AppTest:
    """Open the page as a fresh visitor with this address."""
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    for name, value in {"lang": "en", "prompt": PROMPT, **SETTINGS, **parameters}.items():
        app.query_params[name] = value
    app.switch_page("pages/stages/generation/page.py")
    return checked(app.run())


def checked(app: AppTest) -> AppTest:
    assert not app.exception and not app.error, [e.value for e in [*app.exception, *app.error]]
    return app


def press(app: AppTest, action: str) -> AppTest:
    """Press a button, wait for what it began, and look at the page again."""
    app.button(key=f"generation.{action}").click().run()
    while current(app).running:
        time.sleep(0.02)
    return checked(app.run())


def current(app: AppTest) -> GenerationRun:
    return list(app.session_state["generation.runs"].values())[-1]


def sentences(app: AppTest) -> str:
    return "\n".join(element.value for element in [*app.markdown, *app.info, *app.caption])


def text_part(app: AppTest) -> list[dict]:
    """Return the tokens the live text was given."""
    for element in app.main:
        if element.type == "bidi_component" and "generated_text" in element.proto.component_name:
            proto = element.proto
            return json.loads(proto.json or proto.mixed.json)["tokens"]
    raise AssertionError("no text on the page")


def view(name: str, **parameters: str) -> AppTest:
    """Open a view of the page and wait for what begins by itself."""
    app = run(**{"generation.view": name, **parameters})
    for _ in range(200):
        jobs = app.session_state["generation.jobs"].values()
        if not any(job.running for job in jobs):
            break
        time.sleep(0.05)
    return checked(app.run())


def executed(app: AppTest) -> list[str]:
    """Run the page's snippet and return the lines it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(app.code[-1].value, "snippet", "exec"), {})
    return printed.getvalue().splitlines()
