"""The page as a link: to copy, and as a QR code for the phones in a room."""

from __future__ import annotations

from collections.abc import Callable, Collection
from urllib.parse import urlsplit

import segno
import streamlit as st

from pages.common import link, stages
from pages.common.text import _

_LOCAL = {"localhost", "127.0.0.1", "::1"}
_WIDTH = 440  # pixels of the code: whole on a screen of 720, and read from the last row of a classroom


def picture_format() -> str:
    """Return how figures are saved: "svg", lines that stay sharp, or "png"."""
    return st.session_state.get("pictures", "svg")


def show(only: Collection[str] = (), key: str = "share", more: Callable[[], None] | None = None) -> None:
    """Show the button that opens the link and its QR code, over the page, large enough for a projector.

    Args:
        only: the parameters that the link has besides the language; all when there are none.
        key: of the button.
        more: shows what else can be done with the page.
    """
    st.session_state.setdefault("pictures", "svg")
    if st.button(_("Share"), icon=":material/share:", key=key):
        st.dialog(_("Share"), width="large")(_show_link)(link.address(only), more)


def show_code(address: str) -> None:
    """Show an address as a QR code, or a sentence when it is too long for one."""
    try:
        made = segno.make(address, error="l", micro=False)
    except segno.DataOverflowError:
        st.text(_("The link is too long for a QR code."))
    else:
        picture = made.svg_inline(border=2, dark="black", light="white", omitsize=True)
        st.image(picture, width=_WIDTH, alt=_("QR code of the link"))


def show_address(address: str) -> None:
    """Show an address to copy, and say when nobody else can open it."""
    st.code(address, language=None, wrap_lines=True)
    if urlsplit(address).hostname in _LOCAL:
        st.caption(_("This address works only on this computer. Open the page by the server's name first."))


def _show_link(address: str, more: Callable[[], None] | None) -> None:
    code, told = st.columns([3, 2], vertical_alignment="center")
    with code:
        show_code(address)
    with told:
        st.caption(_("Anyone who opens this link sees this page as it is now."))
        show_address(address)
        st.page_link(
            stages.script("compare"), label=_("Compare this page with another run"), icon=":material/compare_arrows:"
        )
        formats = ["svg", "png"]
        st.segmented_control(
            _("Pictures are saved as"),
            formats,
            default=picture_format(),
            format_func=str.upper,
            required=True,
            key="pictures",
            persist_state="session",  # also while the dialog is closed
        )
        if more is not None:
            more()
