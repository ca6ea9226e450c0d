"""Joint training: one loss, one backward pass, every parameter at once; on record, live, and one step under glass."""

from __future__ import annotations

from pages.common import link, page, widgets
from pages.common.text import _
from pages.stages.training import live, over_training, records, step, two_sides

VIEWS = {
    "records": records.show,
    "live": live.show,
    "step": step.show,
    "sides": two_sides.show,
    "over": over_training.show,
}
titles = {
    "records": _("How the models learned"),
    "live": _("Live training"),
    "step": _("One training step in detail"),
    "sides": _("Two parts of one gradient"),
    "over": _("Both during training"),
}


def show() -> None:
    """Show the view that the reader looks at."""
    VIEWS[widgets.views("training.view", titles, 3)]()


page.header(
    _("Joint training"),
    _(
        "One loss, one backward pass, one step for all parameters at once: this is end-to-end (joint) training. No "
        "part is trained separately."
    ),
    r"\begin{gathered} L = -\frac1n \sum_{i=1}^{n} \ln P(t_{i+1} \mid t_1 \ldots t_i) \\ "
    r"\theta \leftarrow \theta - \eta\,\nabla L \\ L(\theta - \eta g) = L - \eta\,|g|^2 + o(\eta) \end{gathered}",
)
link.fragment(show)
page.try_next(
    page.Suggestion(
        _("Train a small model here and watch its weather predictions approach the grammar."),
        "training",
        {"training.view": "live"},
    ),
    page.Suggestion(
        _("A step of η = 10: does the loss still fall?"),
        "training",
        {"training.view": "step", "training.eta": 1.0},
    ),
    page.Suggestion(
        _("Let a model learn your own text, character by character."),
        "training",
        {"training.view": "live", "training.text": "own"},
    ),
    page.Suggestion(
        _("Untied: the two gradients belong to two matrices."),
        "training",
        {"training.view": "sides", "model": "small-world-untied"},
    ),
    page.Suggestion(
        _("The padding row gets no gradient from the lookup, but gets one through the tied head."),
        "tying",
        {"tying.view": "operations", "tying.operation": "padding"},
    ),
    page.Suggestion(_("Parameters saved by tying."), "tying"),
)
