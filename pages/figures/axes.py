"""What several pictures do to their axes: room for numbers, labels laid flat or at an angle, titles."""

from __future__ import annotations

from pages.figures.figure import Figure


def roomy(figure: Figure) -> Figure:
    """Give bars that point left more room for the numbers at their ends, which a narrow screen needs."""
    low, high = figure.layout.xaxis.range
    if low < 0:
        figure.update_xaxes(range=[low - 0.12 * (high - low), high])
    return figure


def tilt(figure: Figure) -> Figure:
    """Let labels along x lie flat where the page is wide enough for them, else at an angle; the title stays below.

    Plotly moves a title out of the way only where it meets a label, not where it falls between two; the distance it
    would take (standoff) is not kept on the page, so the title begins one line lower.
    """
    title = figure.layout.xaxis.title.text
    figure.update_xaxes(autotickangles=[0, -40, -90], title_text=f"<br>{title}" if title else "")
    return figure


def titled(figure: Figure, y: str, x: str, value: str = "") -> Figure:
    """Set titles, which are the page's own words and keep their spaces; `value` is that of the colour's scale."""
    figure.update_layout(xaxis_title_text=x, yaxis_title_text=y)
    if value:
        figure.data[-1].colorbar.title.text = value
    return tilt(figure)
