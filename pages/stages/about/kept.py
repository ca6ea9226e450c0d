"""What is kept of a visit, and where."""

from __future__ import annotations

import streamlit as st

from pages.common import engines, session
from pages.common.text import _, markdown_literal, visible


def show() -> None:
    """Say what is kept on disk, in memory, in the address and in the browser, and what is sent elsewhere."""
    st.markdown(
        _(
            "**On disk: nothing of what you type or do.** The program keeps one kind of file: of a real model's "
            "weights a converted copy, in the cache directory of the user who started the server, so that the model "
            "loads faster next time. The server's log has errors, which may quote a value that was given."
        )
    )
    st.markdown(
        _(
            "**In memory, for a while.** Your session (prompt, settings, generated texts, a training) ends about "
            "{minutes} minutes after its page was closed. Tokens and numbers of recent prompts are kept for all "
            "sessions together, without saying whose they were, so that nothing is computed twice: {size} MB at most, "
            "the oldest go first. When the server stops, all of it is gone."
        ).format(
            minutes=f"{st.get_option('server.disconnectedSessionTTL') / 60:g}",
            size=f"{session.MAX_CACHE_BYTES / 2**20:.0f}",
        )
    )
    st.markdown(
        _(
            "**In the address.** Prompt and settings are in the address of the page, so they are in your browser's "
            "history, and in the log of a proxy if the network has one. Whoever is given the link sees them. Texts "
            "too long for an address stay in the session alone."
        )
    )
    st.markdown(
        _(
            "**In your browser.** One cookie with a random number, which protects uploads, and the layout you chose. "
            "No account, no tracking, no usage statistics."
        )
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
            "**Sent elsewhere: prompts, when you choose a model that runs elsewhere.** Here these are {names}; what "
            "they keep is their operator's to say. Pages, fonts and scripts come from this server."
        ).format(names=", ".join(markdown_literal(visible(name)) for name in engines.names()))
    )
