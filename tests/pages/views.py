"""Every view of every page with one model, in this process."""

from __future__ import annotations

from tests.browser.views import VIEWS
from tests.pages.harness import PAGES, clean, figures, open_page


def walk(model: str, prompt: str = "the cat sat") -> tuple[int, list[str]]:
    """Open every view of every page; return how many, and for each that fails or shows an error, which and why."""
    opened, wrong = 0, []
    for page in PAGES:
        key, views = VIEWS[page]
        for view in views:
            opened += 1
            try:
                app = clean(open_page(page, model=model, prompt=prompt, **({key: view} if key else {})))
                figures(app)
                if app.session_state["model"] != model:
                    raise AssertionError(f"the page shows {app.session_state['model']}")
            except Exception as error:
                wrong.append(f"{page} {view}: {error}")
    return opened, wrong
