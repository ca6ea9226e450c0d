"""The stages of the sampler that the operator added, and the files that could not be used."""

from __future__ import annotations

import streamlit as st

from pages.common import own_stages
from pages.common.text import _, markdown_literal, readable


def show() -> None:
    """Say what each file adds; nothing where the operator named none."""
    files = own_stages.load()
    if not files:
        return
    st.subheader(_("Sampler stages of this server's own"), anchor=False)
    for file in files:
        if file.problem:
            message = _("{file}, which {variable} names, could not be used. The explorer goes on without its stages.")
            st.warning(message.format(file=markdown_literal(file.path.name), variable=own_stages.VARIABLE))
            st.code(readable(file.problem), language=None, wrap_lines=True)
            continue
        titles = ", ".join(readable(stage.title) for stage in file.stages)
        st.text(_("{file} adds {stages}, computed by Python.").format(file=readable(file.path.name), stages=titles))
