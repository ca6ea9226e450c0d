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
    "order": _("What order does"),
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
    VIEWS[widgets.choice("position.view", _("View"), list(VIEWS), "order", format_func=titles.__getitem__)]()


page.header(
    _("Position encoding"),
    _("Attention weighs a set of tokens; a position encoding tells the model in which order they stand."),
)
link.fragment(show)
page.try_next(
    page.Suggestion(
        _("The last tokens differ when the sentence stops after the name: compare again."),
        "position",
        {"position.view": "order", "position.pair": "names"},
    ),
    page.Suggestion(
        _("Trained on 128 tokens, asked about 512: see which encoding ends, breaks, bends or holds."),
        "position",
        {"position.view": "length"},
    ),
    page.Suggestion(
        _("RoPE bends beyond its length: stretch it without training, and measure which way helps."),
        "position",
        {"position.view": "scaling", "position.scaling": "yarn", "position.factor": 4.0},
    ),
    page.Suggestion(
        _("A base of 100 makes every hand fast: see the wavelengths fall."),
        "position",
        {"position.view": "sinusoidal", "position.base": 100, "position.length": 512},
    ),
    page.Suggestion(
        _("Six heads are not a power of two: see ALiBi's rule for the slopes."),
        "position",
        {"position.view": "alibi", "position.n_heads": 6},
    ),
    page.Suggestion(
        _("Rotated queries and keys meet in the attention scores: open the block."),
        "blocks",
        {"prompt": "小明喜欢小红"},
    ),
)
