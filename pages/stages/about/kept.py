"""What is kept of a visit, and where."""

from __future__ import annotations

import streamlit as st

from pages.classes import operator
from pages.classes.store import IDLE_DAYS, KEPT_DAYS
from pages.common import engines, session
from pages.common.text import _, markdown_literal, visible


def show() -> None:
    """Say what is kept on disk, in memory, in the address and in the browser, and what is sent elsewhere."""
    st.markdown(
        _(
            "**On disk: nothing that you type or do**, but for classes (below). The program stores one kind of "
            "file: a converted copy of a real model's weights, so that the model loads faster next time. It is in "
            "the cache directory of the user who started the server. The server's log records errors, which may "
            "quote a value that was entered."
        )
    )
    _say_classes()
    st.markdown(
        _(
            "**In memory, for a while.** Your session (prompt, settings, generated texts, a training run) ends "
            "about {minutes} minutes after its page is closed. Tokens and numbers of recent prompts are shared "
            "by all sessions, so that nothing is computed twice; the server does not record whose they were. "
            "They take at most {size} MB, and the oldest are removed first. When the server stops, all of it "
            "is deleted."
        ).format(
            minutes=f"{st.get_option('server.disconnectedSessionTTL') / 60:g}",
            size=f"{session.MAX_CACHE_BYTES / 2**20:.0f}",
        )
    )
    st.markdown(
        _(
            "**In the address.** The prompt and the settings are part of the page's address. So they are in "
            "your browser's history, and in the log of a proxy if the network has one. Anyone with the link "
            "can see them. Texts too long for an address stay in the session and in the browser's tab."
        )
    )
    st.markdown(
        _(
            "**In your browser.** One cookie with a random number, which protects uploads; one with your choices in "
            "lessons, until the browser is closed; for those who were in a class, a random number by which the class "
            "knows them, for {days} days; and the layout you chose. No account, no tracking, no usage statistics."
        ).format(days=IDLE_DAYS)
    )
    if not engines.names():
        st.markdown(
            _(
                "**Sent elsewhere: nothing.** Pages, fonts and scripts come from this server, and it needs no network "
                "to work."
            )
        )
        return
    st.markdown(
        _(
            "**Sent elsewhere: prompts, if you choose a model that runs elsewhere.** Here these are {names}; "
            "their operators decide what they keep. Pages, fonts and scripts come from this server."
        ).format(names=", ".join(markdown_literal(visible(name)) for name in engines.names()))
    )


def _say_classes() -> None:
    where = _("in a file on the server") if operator.is_kept() else _("in memory, until the server stops")
    st.markdown(
        _(
            "**Of a class:** its code, its lesson and step, and each student's choices with their times, under a "
            "random name; no name, account or network address. They are kept {where}. Only the person who started "
            "the class can see the answers. A class ends when its teacher ends it, or {idle} days after its teacher "
            "last used it; "
            "{kept} days later it is deleted with all its answers."
        ).format(where=where, idle=IDLE_DAYS, kept=KEPT_DAYS)
    )
