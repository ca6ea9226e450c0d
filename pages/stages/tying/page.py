"""Weight tying, parameters and compute: one matrix used twice, and what models are made of."""

from __future__ import annotations

from pages.common import link, page, session, widgets
from pages.common.text import _
from pages.stages.tying import checks, computing, counting, models, operations, storage

VIEWS = {
    "storage": storage.show,
    "operations": operations.show,
    "parameters": counting.show,
    "compute": computing.show,
    "models": models.show,
    "checks": checks.show,
}
titles = {
    "storage": _("One matrix or two"),
    "operations": _("Operations that keep or break tying"),
    "parameters": _("Parameters"),
    "compute": _("Compute and memory"),
    "models": _("Models compared"),
    "checks": _("Errors in tutorials"),
}


def show() -> None:
    """Show the view that the reader looks at."""
    view = widgets.views("tying.view", titles, 3)
    VIEWS[view](session.language_model())


config = session.language_model().config
rows, width = config.vocab_size, config.d_model
relation = "=" if config.tie_embeddings else r"\neq"
page.header(
    _("Weight tying and parameters"),
    _("The table that turns ids into vectors can also turn vectors into logits: it is stored once and used twice."),
    rf"\begin{{gathered}} X = E[\mathrm{{ids}}], \quad \mathrm{{logits}} = H\,W, \quad W {relation} E^{{\top}} \\ "
    rf"\underbrace{{[S, {rows}]}}_{{\mathrm{{logits}}}} = \underbrace{{[S, {width}]}}_{{H}} \times "
    rf"\underbrace{{[{width}, {rows}]}}_{{W}} \end{{gathered}}",
)
link.fragment(show)
page.try_next(
    page.Suggestion(
        _("GPT-2 small: what share of it is the head?"),
        "tying",
        {"tying.view": "parameters", "tying.subject": "gpt2"},
    ),
    page.Suggestion(
        _("LLaMA 7B: the head and the MLP of one layer in the same unit."),
        "tying",
        {"tying.view": "compute", "tying.subject": "llama-7b"},
    ),
    page.Suggestion(
        _("Move a tied model to the meta device: is it still tied?"),
        "tying",
        {"tying.view": "operations", "tying.operation": "to_meta"},
    ),
    page.Suggestion(_("Design a model with sliders."), "tying", {"tying.view": "parameters", "tying.subject": "free"}),
    page.Suggestion(_("The same matrix, seen as a table of rows."), "embedding", {"table.view": "lookup"}),
)
