"""Embedding lookup: a token's row in a table, what the table's rows mean before and after training."""

from __future__ import annotations

from pages.common import link, page, session, widgets
from pages.common.text import _
from pages.stages.embedding import arithmetic, film, lookup, neighbours, point_map, random_start, sentences

VIEWS = {
    "lookup": lookup.show,
    "neighbours": neighbours.show,
    "map": point_map.show,
    "film": film.show,
    "random": random_start.show,
    "arithmetic": arithmetic.show,
    "sentences": sentences.show,
}
titles = {
    "lookup": _("Lookup"),
    "neighbours": _("Neighbours, forming"),
    "map": _("Map"),
    "film": _("Film of training"),
    "random": _("Random or trained"),
    "arithmetic": _("Arithmetic"),
    "sentences": _("One token, two sentences"),
}


def show() -> None:
    """Show the view that the reader looks at."""
    view = widgets.choice("table.view", _("View"), list(VIEWS), "lookup", format_func=titles.__getitem__)
    VIEWS[view](session.language_model())


config = session.language_model().config
rows, width = config.vocab_size, config.d_model
page.header(
    _("Embedding lookup"),
    _("Each token id picks one row of a table of learned numbers: all the model knows of the token by itself."),
)
page.equation(
    r"\begin{gathered} X = E[\mathrm{ids}] = \mathrm{onehot}(\mathrm{ids})\,E \\ "
    rf"\underbrace{{[S, {width}]}}_{{X}} = \underbrace{{[S, {rows}]}}_{{\mathrm{{onehot}}}} \times "
    rf"\underbrace{{[{rows}, {width}]}}_{{E}} \end{{gathered}}"
)
link.fragment(show)
page.try_next(
    page.Suggestion(
        _("The random start: what are the neighbours of a token after 0 steps?"),
        "embedding",
        {"table.view": "neighbours", "steps": 0},
    ),
    page.Suggestion(
        _("Watch the words of the small world find their places."),
        "embedding",
        {"table.view": "film", "table.colour": "part"},
    ),
    page.Suggestion(
        _("国王 − 男人 + 女人: leave the inputs in, and see who wins."),
        "embedding",
        {"table.view": "arithmetic", "table.analogy": "zh", "table.exclude": False},
    ),
    page.Suggestion(_("The row says nothing of order: add the position next."), "position", {"prompt": "小明喜欢小红"}),
)
