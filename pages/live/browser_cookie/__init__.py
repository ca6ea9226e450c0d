"""Keep a short text in the browser: a cookie, which a new session has from its first run on."""

from __future__ import annotations

from pages.live.part import part


def keep_in_browser(name: str, text: str, days: int | None = None) -> None:
    """Set the cookie `name`; an empty text takes it away. Read it with `st.context.cookies`.

    Args:
        name: letters and "-".
        text: of characters that a cookie may have, such as `urllib.parse.urlencode` gives.
        days: how long it is kept; until the browser is closed when left out.
    """
    part("browser_cookie")(key=f"explorer_cookie_{name}", data={"name": name, "text": text, "days": days}, height=0)
