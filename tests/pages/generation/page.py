"""What the tests of the generation page share: a short text, and waiting for what was begun."""

import time

from streamlit.testing.v1 import AppTest

from lmcore.generation.run import GenerationRun
from tests.pages import harness
from tests.pages.harness import clean, part

PROMPT = "今天天气"
SETTINGS = {"temperature": "0.8", "top_p": "0.9", "seed": "5", "max_new_tokens": "12", "pace": "0"}


def run(**address: str) -> AppTest:
    """Open the page as a fresh visitor with this address."""
    return clean(harness.open_page("generation", **{"prompt": PROMPT, **SETTINGS, **address}))


def press(app: AppTest, action: str) -> AppTest:
    """Press a button, wait for what it began, and look at the page again."""
    app.button(key=f"generation.{action}").click().run()
    while current(app).running:
        time.sleep(0.02)
    return clean(app.run())


def current(app: AppTest) -> GenerationRun:
    return list(app.session_state["generation.runs"].values())[-1]


def text_part(app: AppTest) -> list[dict]:
    """Return the tokens the live text was given."""
    return part(app, "generated_text")["tokens"]


def view(name: str, **address: str) -> AppTest:
    """Open a view of the page and wait for what begins by itself."""
    app = run(**{"generation.view": name, **address})
    for job in app.session_state["generation.jobs"].values():
        job.join(60)
    return clean(app.run())
