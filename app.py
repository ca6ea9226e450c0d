"""The explorer's router: page list, language, prompt bar. Run it with `streamlit run app.py`."""

from __future__ import annotations

import streamlit as st

from pages.classes import panel as class_panel
from pages.classes import seat
from pages.common import bar, link, presenter, share, stages
from pages.common.server import around_the_pages
from pages.common.text import _
from pages.lessons import draft, panel, record
from pages.live.document import document

SIDEBAR_WIDTH = 208  # pixels


def pages() -> list[st.Page]:
    """Return the overview at "/", then the stages' pages, each at an address of its own."""
    numbered = [
        st.Page(stages.script(name), title=f"{number} {title}", url_path=name)
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
    st.set_page_config(page_icon="🔎", layout="wide", initial_sidebar_state=SIDEBAR_WIDTH)
    link.begin()
    panel.begin()
    class_panel.begin()
    shared = class_panel.shared() or panel.shared()
    with st.sidebar:
        bar.language_switch()
        presenter.switch()
        share.show(shared, more=None if shared else draft.show_add)
        document()
        record.publish()
        seat.publish()
    page = st.navigation(listed := pages(), expanded=True)
    name = _("Language model explorer")
    # With an entry of its own there is Streamlit's menu, and in it the choice of light or dark.
    st.set_page_config(page_title=f"{page.title.lstrip('0123456789 ')} · {name}", menu_items={"About": name})
    with st.container(key="prompt-bar"):
        bar.prompt_bar()
    above = class_panel if class_panel.attends() else panel
    waits = above.show(page.url_path.replace("home", "") or "overview")
    presenter.controls(listed, page, shared)
    if not waits:
        bar.notes()
        page.run()
    link.publish()


if __name__ == "__main__":  # Streamlit runs this file for each change in a session
    main()
else:  # `streamlit run` imports it once, to serve it
    app = st.App(__file__, **around_the_pages())
