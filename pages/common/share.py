"""The page as a link: to copy, and as a QR code for the phones in a room."""

from __future__ import annotations

from urllib.parse import urlsplit

import segno
import streamlit as st

from pages.common import link
from pages.common.text import _

_LOCAL = {"localhost", "127.0.0.1", "::1"}


def picture_format() -> str:
    """Return how figures are saved: "svg", lines that stay sharp, or "png"."""
    return st.session_state.get("pictures", "svg")


def show() -> None:
    """Show what opens the link and its QR code; the code is made only while it is looked at."""
    st.session_state.setdefault("pictures", "svg")
    with st.popover(_("Share"), icon=":material/share:", key="share", on_change="rerun") as opened:
        if not opened.open:
            return
        address = link.address()
        st.caption(_("Anyone who opens this link sees this page as it is now."))
        st.code(address, language=None)
        try:
            code = segno.make(address, error="l", micro=False)
        except segno.DataOverflowError:
            st.text(_("The link is too long for a QR code."))
        else:
            picture = code.svg_inline(border=2, dark="black", light="white", omitsize=True)
            st.image(picture, width=240, alt=_("QR code of the link"))
        if urlsplit(address).hostname in _LOCAL:
            st.caption(_("This address works only on this computer. Open the page by the server's name first."))
        formats = ["svg", "png"]
        st.segmented_control(
            _("Pictures are saved as"),
            formats,
            format_func=str.upper,
            required=True,
            key="pictures",
            persist_state="session",  # also while the list is closed
        )
