"""What the views share: the sentence, and which of its tokens are predicted."""

from __future__ import annotations

import streamlit as st

from lmcore import LanguageModel
from lmcore.memory import available_memory
from lmcore.parameters import count
from pages.common import link, session, widgets
from pages.common.text import _, language, markdown_literal, visible

_COPIES = 3  # of a model in float32: its gradient, a copy that moves, and what the backward pass takes meanwhile
EXAMPLES = {"nice": "The weather today is nice", "weather": "今天天气不错", "example": "患者服用华法林后出现黑便"}


def sentence() -> tuple[str, list[int]]:
    """Let the reader choose the sentence and return its text and ids; the last token is the target."""
    source = widgets.choice(
        "training.sentence",
        _("Sentence"),
        ["nice", "weather", "prompt", "example"],
        "weather" if language() == "zh" else "nice",
        format_func={
            "nice": "… → nice",
            "weather": "… → 不错",
            "prompt": _("my prompt"),
            "example": "… → 黑便",
        }.__getitem__,
        help=_("The last token is predicted from the tokens before it."),
    )
    if source == "prompt":
        text, found = session.prompt(), session.require_tokens(2)
    else:
        text, found = EXAMPLES[source], session.encoding(EXAMPLES[source])
    ids = list(found.ids)
    if len(ids) < 2:
        st.info(_("This model's tokenizer turns the example into a single token. Type a longer prompt."))
        link.stop()
    before = b"".join(found.tokens[:-1])
    st.markdown(f"{markdown_literal(before)} → {markdown_literal(found.tokens[-1])}")
    return text, ids


def require_memory(lm: LanguageModel) -> None:
    """Say so and stop the page where a gradient of the model does not fit into what memory is free."""
    needed, free = _COPIES * 4 * count(lm.config).total, available_memory()
    if free is not None and needed > free:
        st.info(
            _(
                "The gradient of {name} and an updated copy need about {needed:.1f} GB in addition to the "
                "model; {free:.1f} GB are free on this machine. Choose a smaller model above."
            ).format(name=markdown_literal(visible(lm.name)), needed=needed / 1e9, free=free / 1e9)
        )
        link.stop()


def last_only_switch() -> bool:
    """Let the reader choose whether the last token alone is scored."""
    return widgets.toggle(
        "training.last_only",
        _("Score the last token only"),
        True,
        help=_("When off, every token is predicted and scored."),
    )
