"""Position encoding: what tells a model where a token stands, and what it does without."""

from __future__ import annotations

from pages.common import link, page, widgets
from pages.common.text import _
from pages.stages.position import compare, distance, learned, length, order, rope, scaling, score_bias, sinusoidal

VIEWS = {
    "order": order.show,
    "length": length.show,
    "distance": distance.show,
    "compare": compare.show,
    "sinusoidal": sinusoidal.show,
    "learned": learned.show,
    "rope": rope.show,
    "scaling": scaling.show,
    "alibi": score_bias.show_alibi,
    "relative": score_bias.show_relative,
}
titles = {
    "order": _("Effect of order"),
    "length": _("Beyond the trained length"),
    "distance": _("Attention by distance"),
    "compare": _("Side by side"),
    "sinusoidal": _("Sinusoidal"),
    "learned": _("Learned"),
    "rope": "RoPE",
    "scaling": _("RoPE scaling"),
    "alibi": "ALiBi",
    "relative": _("Relative bias"),
}


def show() -> None:
    """Show the view that the reader looks at."""
    VIEWS[widgets.views("position.view", titles, 5)]()


page.header(
    _("Position encoding"),
    _("Attention sees a set of tokens. A position encoding tells the model their order."),
)
link.fragment(show)
page.try_next(
    page.Suggestion(
        _("When the sentence stops after the name, the last tokens differ: compare again."),
        "position",
        {"position.view": "order", "position.pair": "names"},
    ),
    page.Suggestion(
        _("Trained on 128 tokens, tested on 512: see which encodings stop, get worse or keep working."),
        "position",
        {"position.view": "length"},
    ),
    page.Suggestion(
        _("RoPE gets worse beyond its trained length. Stretch it without training, and measure which method helps."),
        "position",
        {"position.view": "scaling", "position.scaling": "yarn", "position.factor": 4.0},
    ),
    page.Suggestion(
        _("With a base of 100 every hand turns fast: watch the wavelengths fall."),
        "position",
        {"position.view": "sinusoidal", "position.base": 100, "position.length": 512},
    ),
    page.Suggestion(
        _("Six heads, not a power of two: see ALiBi's rule for the slopes."),
        "position",
        {"position.view": "alibi", "position.n_heads": 6},
    ),
    page.Suggestion(
        _("Rotated queries and keys are multiplied to give the attention scores: open the block."),
        "blocks",
        {"prompt": "小明喜欢小红"},
    ),
)
