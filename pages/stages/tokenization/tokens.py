"""The prompt as tokens: ids, bytes, offsets, and the way back."""

from __future__ import annotations

import streamlit as st

from lmcore import Encoding, LanguageModel
from pages.common import link, page, session
from pages.common.text import _, markdown_literal, ngettext
from pages.live.token_groups import token_groups
from pages.stages.tokenization.common import composed, drawn_groups, follow, require_text, token_table

CODE = """
import lmcore

tokenizer = lmcore.load({name!r}).tokenizer
encoding = tokenizer.encode({prompt!r})
for token_id, token, (start, end) in zip(encoding.ids, encoding.tokens, encoding.offsets):
    print(token_id, token.hex(" "), start, end, encoding.text[start:end])
print(len(encoding.text) / (len(encoding) - encoding.n_added), "characters per token")
assert tokenizer.decode(encoding.ids[encoding.n_added :]) == encoding.text
"""


def show(lm: LanguageModel) -> None:
    """Draw the view."""
    text = require_text()
    found = session.encoding()
    last = len(found) - 1
    position = link.remember("position", None, int)
    if position is not None and not 0 <= position <= last:
        link.replace("position", min(max(position, 0), last), position)
    selected = found.n_added if st.session_state["position"] is None else st.session_state["position"]  # the first own
    st.caption(
        _(
            "Each chip shows the text, the bytes in hexadecimal and the id. ␣ is a space, ⏎ a new line. A "
            "bracket joins the tokens that share one character."
        )
    )
    token_groups(
        found.tokens,
        found.ids,
        drawn_groups(found),
        key="tokenization.groups",
        label=_("The prompt's tokens"),
        selected=selected,
        on_select=lambda chosen: st.session_state.update(position=chosen),
    )
    _details(found, selected)
    _sizes(found)
    follow(
        _("See the row of {token} (token {position}) in the embedding").format(
            token=markdown_literal(found.tokens[selected]), position=selected
        ),
        {"table.view": "lookup", "position": selected},
    )
    _round_trip(lm, found)
    page.numbers_table(token_table(found), "tokens")
    page.snippet(CODE.format(name=lm.name, prompt=text))


def _sizes(found: Encoding) -> None:
    characters, n_bytes, n_tokens = len(found.text), len(found.text.encode()), len(found) - found.n_added
    values = {
        _("Characters"): f"{characters:,}",
        _("UTF-8 bytes"): f"{n_bytes:,}",
        _("Tokens"): f"{len(found):,}",
        _("Characters per token"): f"{characters / n_tokens:.3f}",
        _("Bytes per token"): f"{n_bytes / n_tokens:.3f}",
    }
    with st.container(horizontal=True, gap="medium"):  # wraps on a phone
        for name, value in values.items():
            st.metric(name, value, width="content")
    if found.n_added:
        added = " ".join(markdown_literal(token) for token in found.tokens[: found.n_added])
        st.caption(
            _("The model expects {token} in front of a text. It is not counted in the averages per token.").format(
                token=added
            )
        )


def _details(found: Encoding, position: int) -> None:
    token, (start, end) = found.tokens[position], found.offsets[position]
    try:
        token.decode()
    except UnicodeDecodeError:
        whole = _("It is only a part of {characters}, not a text by itself.")
    else:
        whole = _("It is {characters} in the text.")
    n = end - start
    sentence = ngettext(
        "Token {position}: id {token_id}, bytes {hex}, {n} character of the text, from offset {start}.",
        "Token {position}: id {token_id}, bytes {hex}, {n} characters of the text, from offset {start}.",
        n,
    )
    st.markdown(
        sentence.format(
            position=position,
            token_id=f"**{found.ids[position]}**",
            hex=f"`{token.hex(' ')}`",
            n=n,
            start=start,
        )
        + " "
        + whole.format(characters=markdown_literal(found.text[start:end]))
    )


def _round_trip(lm: LanguageModel, found: Encoding) -> None:
    given, back = found.text.encode(), lm.tokenizer.decode_bytes(found.ids[found.n_added :])
    equal = sum(a == b for a, b in zip(given, back, strict=False))
    if given == back:
        sentence = _("Round trip: decoding the ids restores the text; {n:,} of {n:,} bytes are equal.")
        st.markdown("✓ " + sentence.format(n=len(back)))
    else:
        st.markdown(
            "✗ "
            + _("Round trip: {n:,} bytes went in and {back:,} came back; {equal:,} of them are equal.").format(
                n=len(given), back=len(back), equal=equal
            )
        )
        composed(found.text, back.decode("utf-8", "replace"))
