"""The explorer's router: page list, language, prompt bar. Run it with `streamlit run app.py`."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from pages.common import bar, link, presenter, share, stages
from pages.common.server import around_the_pages
from pages.common.text import _
from pages.lessons import panel

ROOT = Path(__file__).parent


def pages() -> list[st.Page]:
    """Return the overview at "/", then the stages' pages, each at an address of its own."""
    numbered = [
        st.Page(stages.script(name), title=f"{number} · {title}", url_path=name)
        for number, (name, title) in enumerate(stages.titles().items(), start=1)
    ]
    lessons = st.Page(stages.script("lessons"), title=_("Lessons"), url_path="lessons", icon=":material/school:")
    about = st.Page(stages.script("about"), title=_("About"), url_path="about", icon=":material/info:")
    overview = stages.script("overview")
    home = st.Page(overview, title=_("The whole way"), url_path="home", default=True, icon=":material/route:")
    # Streamlit serves its default page at "/" only, and "/overview" has to work as a link too.
    named = st.Page(overview, title=_("The whole way"), url_path="overview", visibility="hidden")
    return [home, *numbered, lessons, about, named]


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
    app = st.App(__file__, **around_the_pages())
