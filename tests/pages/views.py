"""Every view of a page, in this process, with whatever model and prompt its address names."""

from __future__ import annotations

from tests.browser.views import VIEWS
from tests.pages.harness import clean, figures, open_page


def wrong_views(page: str, **address: str) -> dict[str, str]:
    """Open every view of a page, in one session where that can be; return those that fail or show an error, and why."""
    key, views = VIEWS[page]
    wrong, app = {}, None
    for view in views:
        try:
            if app is None or not key.endswith(".view"):
                app = open_page(page, **address, **({key: view} if key else {}))
            else:
                app.session_state[key] = view
                app.run()
            figures(clean(app))
            shown = app.session_state["model"]
            assert shown == address["model"], f"the page shows {shown}"
        except Exception as error:
            wrong[view], app = str(error), None
    return wrong
