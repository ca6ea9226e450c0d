"""The buttons that move a generation, whoever draws its tokens: one step, run or stop, back to the prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.common import link
from pages.common.text import _

Action = Literal["step", "run", "stop", "restart"]


def buttons(
    actions: Mapping[Action, Callable[[], object]],
    act: Callable[[Callable[[], object]], None],
    *,
    key: str,
    running: bool,
    can_grow: bool,
    at_start: bool,
) -> None:
    """Draw the buttons in a row.

    Args:
        actions: what each is for.
        act: given the pressed one's action, carries it out before the page runs again.
        key: what their keys begin with.
        running: whether tokens are coming just now.
        can_grow: whether a token can follow the present place.
        at_start: whether the present place is the prompt's end.
    """
    step, go, restart = st.columns(3)

    def button(column: DeltaGenerator, label: str, action: Action, icon: str, enabled: bool) -> None:
        column.button(
            label,
            key=f"{key}.{action}",
            icon=f":material/{icon}:",
            disabled=not enabled,
            type="primary" if column is go else "secondary",
            width="stretch",
            on_click=act,
            args=(actions[action],),
        )

    button(step, _("Step"), "step", "skip_next", can_grow and not running)
    if running:
        button(go, _("Stop"), "stop", "stop", True)
    else:
        button(go, _("Run"), "run", "play_arrow", can_grow)
    button(restart, _("Back to the prompt"), "restart", "first_page", not at_start)


def nothing_yet() -> None:
    """Say that there is no text to look at, and lead to the view that generates one."""
    st.info(_("Nothing has been generated from this prompt yet."))
    st.button(
        _("Token by token"),
        key="generation.begin",
        icon=":material/arrow_forward:",
        type="tertiary",
        on_click=link.assign,
        args=({"generation.view": "write"},),
    )
