"""Compare: two runs side by side, where they part first, and how far apart they are."""

from __future__ import annotations

from lmcore.loading import model_name
from pages.common import engines, link, page, session, widgets
from pages.common.text import _
from pages.stages.compare import models, parts, positions, quantisation, texts

VIEWS = {"positions": positions.show, "texts": texts.show, "parts": parts.show, "quantisation": quantisation.show}
titles = {
    "positions": _("Where they part"),
    "texts": _("Texts"),
    "parts": _("Which part did it"),
    "quantisation": _("Quantisation"),
}


def show() -> None:
    """Show the view that the reader looks at."""
    VIEWS[widgets.views("compare.view", titles, 4)]()


page.header(
    _("Compare"),
    _("Two runs side by side: where they part first, and by how much."),
    r"\mathrm{KL}(A\,\|\,B) = \sum_{t} P_A(t)\,\log_2 \frac{P_A(t)}{P_B(t)}",
)
link.fragment(show)
own = session.model_name()
same_weights = page.Suggestion(
    _("The same weights in bfloat16: which positions feel it?"),
    "compare",
    {"compare.a": models.BY_DEFAULT, "compare.model": f"{own}:bfloat16", "compare.reads": "same"},
)
page.try_next(
    *([same_weights] if own not in engines.names() and model_name(own).plain else []),
    page.Suggestion(
        _("Another model of the small world, at the same place of the text."),
        "compare",
        {"model": "small-world", "compare.model": "small-world-untied"},
    ),
    page.Suggestion(
        _("32 weights in 4 bits, and what that costs."),
        "compare",
        {"compare.view": "quantisation", "quantisation.look": "piece", "quantisation.kind": "q4_0"},
    ),
    page.Suggestion(_("The defaults of vLLM against plain sampling."), "compare", {"compare.sampler": "vllm"}),
)
