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
    "neighbours": _("How neighbours form"),
    "lookup": _("Lookup"),
    "map": _("Map"),
    "film": _("Animation of training"),
    "random": _("Random and trained"),
    "arithmetic": _("Arithmetic"),
    "sentences": _("One token, two sentences"),
}


def show() -> None:
    """Show the view that the reader looks at."""
    view = widgets.views("table.view", titles, 4)
    VIEWS[view](session.language_model())


config = session.language_model().config
rows, width = config.vocab_size, config.d_model
page.header(
    _("Embedding lookup"),
    _(
        "Each token id selects one row of a learned table: everything the model knows about the token without its "
        "context."
    ),
    r"\begin{gathered} X = E[\mathrm{ids}] = \mathrm{onehot}(\mathrm{ids})\,E \\ "
    rf"\underbrace{{[S, {width}]}}_{{X}} = \underbrace{{[S, {rows}]}}_{{\mathrm{{onehot}}}} \times "
    rf"\underbrace{{[{rows}, {width}]}}_{{E}} \end{{gathered}}",
)
link.fragment(show)
page.try_next(
    page.Suggestion(
        _("The random start: what are the neighbours of a token after 0 steps?"),
        "embedding",
        {"table.view": "neighbours", "steps": 0},
    ),
    page.Suggestion(
        _("Watch how the words of the small world arrange themselves during training."),
        "embedding",
        {"table.view": "film", "table.colour": "part"},
    ),
    page.Suggestion(
        _("国王 − 男人 + 女人: include the input tokens, and see which token is nearest."),
        "embedding",
        {"table.view": "arithmetic", "table.analogy": "zh", "table.exclude": False},
    ),
    page.Suggestion(
        _("The row does not contain the order: add the position next."), "position", {"prompt": "小明喜欢小红"}
    ),
)
