"""The explorer's router: page list, language, prompt bar. Run it with `streamlit run app.py`."""

from __future__ import annotations

from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware
from streamlit.runtime.pages_manager import PagesManager

from pages.common import bar, link, presenter, share
from pages.common.headers import SecurityHeaders
from pages.common.text import _
from pages.lessons import panel

ROOT = Path(__file__).parent


def stages() -> list[tuple[str, str]]:
    """Return the pages in the order of the pipeline: file name and title."""
    return [
        ("tokenization", _("Tokenization")),
        ("embedding", _("Embedding lookup")),
        ("position", _("Position encoding")),
        ("blocks", _("Transformer blocks")),
        ("logits", _("LM head and logits")),
        ("sampling", _("Sampling")),
        ("generation", _("Generation")),
        ("tying", _("Weight tying and parameters")),
        ("training", _("Joint training")),
    ]


def pages() -> list[st.Page]:
    """Return the stages' pages, each at an address of its own, and the first of them once more at "/"."""
    written = [
        (f"pages/stages/{name}.py", f"{number} · {title}", name)
        for number, (name, title) in enumerate(stages(), start=1)
        if (ROOT / "pages" / "stages" / f"{name}.py").exists()
    ]
    lessons = st.Page("pages/stages/lessons.py", title=_("Lessons"), url_path="lessons", icon=":material/school:")
    about = st.Page("pages/stages/about.py", title=_("About"), url_path="about", icon=":material/info:")
    # Streamlit serves its default page at "/" only, and "/tokenization" has to work as a link too.
    first_script, first_title, _name = written[0]
    home = st.Page(first_script, title=first_title, url_path="home", default=True, visibility="hidden")
    return [*(st.Page(script, title=title, url_path=name) for script, title, name in written), lessons, about, home]


def main() -> None:
    """Draw what is around the page, then the page."""
    st.set_page_config(page_title="Language model explorer", page_icon="🔎", layout="wide")
    link.begin()
    st.html(ROOT / "pages" / "common" / "style.css")
    with st.sidebar:
        bar.language_switch()
        presenter.switch()
        share.show()
    page = st.navigation(pages())
    lesson = st.container()
    with st.container(key="prompt-bar"):
        bar.prompt_bar()
        bar.notes()
    with lesson:  # above the prompt bar, but it needs to know the model
        waits = panel.show()
    presenter.way_out()
    if not waits:
        page.run()
    link.publish()


if __name__ == "__main__":  # Streamlit runs this file for each change in a session
    main()
else:  # `streamlit run` imports it once, to serve it
    # A folder named pages makes Streamlit look for its older kind of pages first: whoever opened a link as the first
    # visitor of a fresh server would be told that the page does not exist.
    PagesManager.uses_pages_directory = False
    app = st.App(__file__, middleware=[Middleware(SecurityHeaders)])
