"""A special string in the text: is it text, or a control token?"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

import streamlit as st

from lmcore import LanguageModel
from lmcore.tokenizer.graphemes import shared_groups
from pages.common import page, widgets
from pages.common.text import _, markdown_literal
from pages.live.token_groups import token_groups
from pages.stages.tokenization.common import results_table, special_strings

MAX_CHARACTERS = 200
MAX_NAMED = 8  # control tokens; Gemma has thousands

CODE = """
import lmcore

tokenizer = lmcore.load({name!r}).tokenizer
print(len(tokenizer.special_tokens), list(tokenizer.special_tokens.items())[:8])
print(tokenizer.encode({text!r}).ids)
print(tokenizer.encode({text!r}, special_tokens=True).ids)
"""


def show(lm: LanguageModel) -> None:
    """Draw the view."""
    special = lm.tokenizer.special_tokens
    first = next(iter(special), "")
    controls, picture = page.workbench()
    with controls:
        text = widgets.text("special_text", _("Text"), f"x{first}y", max_chars=MAX_CHARACTERS)
        found = lm.tokenizer.encode(text, special_tokens=special_strings() == "control")
    with picture:
        if not found.ids:
            st.info(_("There is no text here. Type some."))
        token_groups(
            found.tokens,
            found.ids,
            shared_groups(found.text, found.offsets),
            key="special.groups",
            label=_("The text's tokens"),
        )
        st.markdown(_what(special))
    st.markdown(_("Both results:"))
    page.numbers_table(results_table(lm, text), "special-strings")
    page.snippet(CODE.format(name=lm.name, text=text))


def _what(special: Mapping[str, int]) -> str:
    """Say what control tokens are, with the first few of this vocabulary's."""
    named = [f"{markdown_literal(name)} (id {token_id})" for name, token_id in islice(special.items(), MAX_NAMED)]
    if len(special) == 1:
        return _(
            "{special} is a control token: it marks where a text ends. When a user types the same characters, "
            "they must stay text; otherwise the author of a prompt could end the text. Switch and compare."
        ).format(special=named[0])
    if len(special) > MAX_NAMED:
        named.append(_("and {n:,} more, listed under “The vocabulary”").format(n=len(special) - MAX_NAMED))
    return _(
        "This vocabulary has {n:,} control tokens, which mark where a text or a turn begins and ends, or are "
        "reserved: {special}. When a user types the same characters, they must stay text; otherwise the author "
        "of a prompt could end the text. Switch and compare."
    ).format(n=len(special), special=", ".join(named))
