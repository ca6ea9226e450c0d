"""Tokens as points in two or three dimensions: move, turn, search, choose, encircle, and play what training did."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import streamlit as st

from pages.common.text import _
from pages.live.part import part


@dataclass(frozen=True)
class Colours:
    """What the colours of points say: groups, or an amount.

    Attributes:
        groups: index into `names` for each point; None for amounts.
        names: the groups' names and CSS colours, in the order of the legend.
        amounts: one number per point, when there are no groups.
        title: what the amounts are.
    """

    groups: Sequence[int] | None = None
    names: Sequence[tuple[str, str]] = ()
    amounts: Sequence[float] = ()
    title: str = ""


@dataclass(frozen=True)
class Frame:
    """What is nearest to the chosen token at one moment.

    Attributes:
        name: of the moment, e.g. "after 400 steps".
        near: indices of points to mark.
        texts: name and score of each neighbour, for the list beside a film; it may hold more than `near`.
    """

    name: str = ""
    near: Sequence[int] = ()
    texts: Sequence[tuple[str, str]] = field(default_factory=tuple)


def token_map(
    places: np.ndarray,
    names: Sequence[str],
    labels: Sequence[str],
    *,
    key: str,
    alt: str,
    colours: Colours,
    frames: Sequence[Frame],
    chosen: int | None = None,
    axis_titles: Sequence[str] = (),
    start: int = 0,
    near_title: str = "",
    on_choose: Callable[[int], None],
    on_pick: Callable[[list[int]], None],
) -> None:
    """Show the map.

    Args:
        places: [frame, point, axis] with two or three axes; the scale is fixed over all frames.
        names: text of each point, made visible, as the reader would type it in the search.
        labels: of each point, as it is written on the map.
        key: unique on the page.
        alt: what it shows, in a sentence, for those who cannot see it.
        colours: of the points.
        frames: one for each of `places`; with more than one there is a film to play.
        chosen: index of the point to mark.
        axis_titles: of the axes, which then have numbers; without them distances are not to be read off.
        start: the frame shown first.
        near_title: above the list of neighbours of a film.
        on_choose: called with the index of a point the reader chose, before the page runs again.
        on_pick: called with the indices the reader encircled, before the page runs again; with none to forget them.
    """
    n_frames, n_points, n_axes = places.shape

    def chose() -> None:
        index = st.session_state[key].get("token")
        if isinstance(index, int) and 0 <= index < n_points:
            on_choose(index)

    def picked() -> None:
        indices = st.session_state[key].get("picked")
        if isinstance(indices, list):
            on_pick([index for index in indices if isinstance(index, int) and 0 <= index < n_points])

    amounts = [float(value) for value in colours.amounts]
    part("token_map")(
        key=key,
        data={
            "places": base64.b64encode(np.ascontiguousarray(places, dtype="<f4").tobytes()).decode("ascii"),
            "points": zlib.crc32("\0".join(labels).encode("utf-8", "surrogatepass")),
            "axes": n_axes,
            "frames": n_frames,
            "frame": start,
            "names": list(names),
            "labels": list(labels),
            "groups": None if colours.groups is None else [int(group) for group in colours.groups],
            "group_names": [list(pair) for pair in colours.names],
            "amounts": amounts,
            "amount_range": [min(amounts, default=0.0), max(amounts, default=0.0)],
            "amount_title": colours.title,
            "axis_titles": list(axis_titles),
            "chosen": chosen,
            "near": [[int(index) for index in frame.near] for frame in frames],
            "near_texts": [[list(text) for text in frame.texts] for frame in frames],
            "frame_names": [frame.name for frame in frames],
            "wording": {
                "alt": alt,
                "near": near_title,
                "search": _("Find tokens"),
                "found": _("{n} of {all}"),
                "move": _("Turn") if n_axes == 3 else _("Move"),
                "lasso": _("Lasso"),
                "box": _("Box"),
                "reset": _("Reset"),
                "save": _("Save picture"),
                "film": _("Steps of training"),
                "play": _("Play"),
                "pause": _("Pause"),
            },
        },
        on_token_change=chose,
        on_picked_change=picked,
    )
