"""Tokenization: a text becomes ids, byte by byte and merge by merge, and an id is only a name."""

from __future__ import annotations

from pages.common import engines, link, page, session, widgets
from pages.common.text import _
from pages.stages.tokenization import chat, compare, engine, merges, names, search, special, tokens, toy, train

VIEWS = {
    "tokens": tokens.show,
    "chat": chat.show,
    "compare": compare.show,
    "merges": merges.show,
    "train": train.show,
    "vocabulary": search.show,
    "special": special.show,
    "whose": toy.show,
    "names": names.show,
}
titles = {
    "tokens": _("Tokens"),
    "chat": _("Chat"),
    "compare": _("Several vocabularies"),
    "merges": _("Merges"),
    "train": _("Train a vocabulary"),
    "vocabulary": _("The vocabulary"),
    "special": _("Special strings"),
    "whose": _("Ids of two vocabularies"),
    "names": _("An id is only a name"),
}


def show() -> None:
    """Show the view that the reader looks at."""
    view = widgets.views("tokenization.view", titles, 5)
    VIEWS[view](session.language_model())


if (served := engines.chosen()) is not None:
    engine.show(served)
    link.stop()
tokenizer = session.language_model().tokenizer
text = _("text")
parts = {
    _("special"): len(tokenizer.special_tokens),
    _("bytes"): 256,
    _("merges"): len(tokenizer.merges),
}
made_of = " + ".join(rf"\underbrace{{{n}}}_{{\text{{{name}}}}}" for name, n in parts.items())
page.header(
    _("Tokenization"),
    _(
        "A tokenizer splits the bytes of the text into pieces from its vocabulary. The model receives only the "
        "ids of these pieces."
    ),
    rf"\text{{{text}}} \longrightarrow \text{{UTF-8}} \longrightarrow (t_1, \dots, t_S), \qquad "
    r"t_i \in \{0, \dots, V-1\}, \qquad V = "
    # Other makers' vocabularies need not be a sum of these: some merges make the same token, some tokens have none.
    + (f"{made_of} = " if sum(parts.values()) == tokenizer.vocab_size else "")
    + f"{tokenizer.vocab_size}",
)
link.fragment(show)
page.try_next(
    page.Suggestion(
        _("An emoji of four bytes and a rare character of three: which tokens make them up?"),
        "tokenization",
        {"prompt": "我喜欢😊和龘", "tokenization.view": "tokens"},
    ),
    page.Suggestion(
        _("Watch the merges of 今天天气: which characters are joined first?"),
        "tokenization",
        {"prompt": "今天天气", "tokenization.view": "merges", "merge_step": 0},
    ),
    page.Suggestion(_("Each id selects one row of a table: the embedding"), "embedding"),
)
