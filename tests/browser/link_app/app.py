"""Three pages with the shared widgets and no model, to test how values and the address follow the reader."""

import streamlit as st

from pages.common import link
from pages.common.server import around_the_pages


def main() -> None:
    """Draw a page."""
    link.begin()
    page = st.navigation(
        [
            st.Page("scripts/first.py", title="First", url_path="first", default=True),
            st.Page("scripts/second.py", title="Second", url_path="second"),
            st.Page("scripts/third.py", title="Third", url_path="third"),
        ]
    )
    link.remember("lang", "en")
    link.remember("prompt", "hello")
    st.text_input("Prompt", key="prompt", persist_state="session")
    page.run()
    link.publish()


if __name__ == "__main__":
    main()
else:
    app = st.App(__file__, **around_the_pages())
