"""The sections every page has, in the same order and the same quiet look."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import plotly.io
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.common import link, presenter, share, stages
from pages.common.streamlit_private import PlainFigure, in_this_session
from pages.common.text import _
from pages.figures import theme
from pages.figures.figure import Figure
from pages.live.cells import HeatMapCell, cells

_FORMATS = {"probability": "%.2f %%", "logit": "%.3f", "count": "localized", "number": "%.4f"}


def header(title: str, sentence: str, latex: str = "", note: str = "") -> None:
    """Show the page's title and the one sentence that says what it shows, in one line where there is room.

    Args:
        title: of the page.
        sentence: what it shows.
        latex: the equation of all its views, with this model's own sizes and no text of users or models; folded.
        note: a sentence on the equation.
    """
    with st.container(key="title-line", horizontal=True, vertical_alignment="center", gap="small"):
        st.title(title, anchor=False, width="content")
        st.markdown(sentence)
        if latex:
            with st.popover(_("Equation"), type="tertiary", icon=":material/function:", key="equation"):
                st.latex(latex)
                st.caption(note)


def equation(latex: str) -> None:
    """Show a view's equation under its picture, as `header` shows the page's."""
    st.latex(latex)


def workbench(key: str = "workbench", widths: tuple[int, int] = (1, 3)) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Return two columns: a narrow one for controls, a wide one for what they move; on a phone it is above them."""
    with st.container(key=key):
        controls, picture = st.columns(widths, gap="medium")
    return controls, picture


def failure(error: BaseException | None) -> None:
    """Show what ended some work before its time, in the program's own words; nothing where nothing went wrong."""
    if error is not None:
        st.code(f"{type(error).__name__}: {error}", language=None, wrap_lines=True)


def figure(
    chart: Figure,
    key: str,
    alt: str,
    *,
    said: bool = True,
    chooses: Callable[[HeatMapCell], Mapping[str, Any]] | None = None,
) -> None:
    """Show a plotly figure, and below it how to read it.

    Args:
        chart: from a builder in pages/figures.
        key: unique on the page; also the name of the file when it is saved.
        alt: what it shows and how to read it, in a sentence; also for those who cannot see it.
        said: whether the sentence is shown; not where several small figures have one in common.
        chooses: for a heat map, what a click on a cell chooses: values by name, as the widgets of the page have them.
    """
    config = {
        "displaylogo": False,
        "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
        "toImageButtonOptions": {"format": share.picture_format(), "filename": key, "scale": 3},
    }
    spec = chart.spec()
    spec["layout"]["template"] = _template()  # the browser fills it with the page's colours
    mounted = key
    if presenter.is_on():
        presenter.enlarge(spec)
        mounted += ".presenter"  # a chart of its own: Plotly keeps the sizes that its type had
    theme.write_in_ink(spec)
    with st.container(gap=None):
        st.plotly_chart(PlainFigure(spec), key=mounted, alt=alt, config=config)
        if said and not presenter.is_on():
            st.caption(alt + " " + _("Click a cell to choose what it is about.") if chooses else alt)
        if chooses:
            shapes = [np.shape(trace.get("z", ())) for trace in chart.data]
            cells(mounted, shapes, lambda cell: link.assign(chooses(cell)))


def growing_chart(data: pd.DataFrame, spec: Mapping[str, Any], key: str, alt: str) -> None:
    """Show a Vega-Lite chart, to which points are added in place.

    Args:
        data: its points.
        spec: from a builder in pages/figures.
        key: unique on the page.
        alt: what it shows, for those who cannot see it.
    """
    st.vega_lite_chart(data, {**spec, "usermeta": {"embedOptions": {"renderer": "svg"}}}, key=key, alt=alt)


@functools.cache
def _template() -> dict[str, Any]:
    return plotly.io.templates[plotly.io.templates.default].to_plotly_json()


def numbers_table(
    frame: pd.DataFrame,
    filename: str,
    formats: Mapping[str, str] | None = None,
    as_json: Callable[[], str] | None = None,
) -> None:
    """Show the numbers as a table that can be downloaded as CSV and JSON, where they have full precision.

    Args:
        frame: the numbers; token text in it must have been through `visible`.
        filename: without its extension.
        formats: column -> "probability", "logit", "count", "number", or a printf format.
        as_json: gives the JSON when it says more than the table's rows.
    """
    if presenter.is_on():
        return
    columns = {
        name: st.column_config.NumberColumn(format=_FORMATS.get(kind, kind)) for name, kind in (formats or {}).items()
    }
    percent = {name: frame[name] * 100 for name, kind in (formats or {}).items() if kind == "probability"}
    st.dataframe(frame.assign(**percent), hide_index=True, column_config=columns, key=f"{filename}.table")
    downloads(filename, lambda: frame, as_json)


def downloads(filename: str, rows: Callable[[], pd.DataFrame], as_json: Callable[[], str] | None = None) -> None:
    """Show the buttons that save numbers as CSV and as JSON, which are made when a button is pressed.

    Args:
        filename: without its extension.
        rows: gives the numbers; token text in them must have been through `visible`.
        as_json: gives the JSON when it says more than the rows.
    """
    if presenter.is_on():
        return
    with st.container(horizontal=True):
        download(_("Download as CSV"), f"{filename}.csv", lambda: as_csv(rows()))
        download(_("Download as JSON"), f"{filename}.json", as_json or (lambda: rows_as_json(rows())))


def as_csv(frame: pd.DataFrame) -> bytes:
    """Return a table as CSV; the mark at its start tells spreadsheets that the text is UTF-8."""
    return frame.to_csv(index=False).encode("utf-8-sig")


def download(label: str, file_name: str, data: Callable[[], bytes | str]) -> None:
    """Show a button that saves a file, which is made when it is pressed; the file's name is the button's key."""
    mime = {"csv": "text/csv", "json": "application/json", "toml": "application/toml"}[file_name.rsplit(".", 1)[-1]]
    data = in_this_session(data)
    st.download_button(label, data, file_name, mime, key=file_name, on_click="ignore", icon=":material/download:")


def rows_as_json(frame: pd.DataFrame) -> str:
    """Return a table's rows as JSON, floats as they are; what is not a number is null."""
    return json.dumps(json.loads(frame.to_json(orient="records", double_precision=15)), ensure_ascii=False, indent=1)


def snippet(code: str) -> None:
    """Show the lines of Python that give the page's numbers, ready to copy and run; quote texts with `repr`."""
    if presenter.is_on():
        return
    with st.container(key="snippet"):
        st.subheader(_("The same in Python"), anchor=False)
        st.code(code.strip("\n"), language="python", wrap_lines=True)


@dataclass(frozen=True)
class Suggestion:
    """Something to try next: a sentence, and the link that sets it up.

    `stage` is a page's folder, e.g. "sampling"; `state` are values by name, e.g. {"prompt": "我喜欢"}.
    """

    sentence: str
    stage: str
    state: Mapping[str, Any] = field(default_factory=dict)


def try_next(*suggestions: Suggestion) -> None:
    """End the page with links to what is worth trying."""
    if presenter.is_on():
        return
    with st.container(key="try-next"):
        st.subheader(_("Try next"), anchor=False)
        for suggestion in suggestions:
            follow(suggestion)


def follow(suggestion: Suggestion) -> None:
    """Show a link that opens a page in a state."""
    values = {key: link.as_text(value) for key, value in suggestion.state.items()}
    st.page_link(
        stages.script(suggestion.stage),
        label=suggestion.sentence,
        icon=":material/arrow_forward:",
        query_params={**values, link.APPLY: "1"} if values else None,
    )


def follow_in_a_tab(suggestion: Suggestion) -> None:
    """Show a link that opens a page in a state in a tab of its own, as a first visit: this one stays as it is.

    Nothing is shown where the state is too long for an address.
    """
    here = str(st.context.url or "http://localhost:8501/").partition("?")[0].rpartition("/")[0]
    values = {key: link.as_text(value) for key, value in {"lang": st.session_state["lang"], **suggestion.state}.items()}
    if any(len(text) > link.LONGEST for text in values.values()):
        return
    address = f"{here}/{suggestion.stage}?{urlencode(values, safe='/,:')}"
    st.link_button(suggestion.sentence, address, icon=":material/open_in_new:", type="tertiary")


def open_page(stage: str) -> None:
    """Go to a page at once, with the values the session has now; nothing after this runs."""
    st.switch_page(stages.script(stage))
