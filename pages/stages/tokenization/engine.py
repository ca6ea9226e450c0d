"""The prompt in the tokens of a model that runs elsewhere: what its server says, and what it leaves open."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from lmcore.engines.engine import Engine
from lmcore.engines.served_text import ServedText
from lmcore.engines.tokens import ServerTokens
from pages.common import conversation, engine_facts, engines, link, page
from pages.common.text import _, visible
from pages.live.token_groups import token_groups
from pages.stages.tokenization import chat
from pages.stages.tokenization.common import MAX_DRAWN, composed, require_text

CODE = """
from lmcore.engines.config import configured
from lmcore.engines.engine import Engine

engine = Engine(next(config for config in configured() if config.name == {name!r}))
found = engine.tokenize({prompt!r})
print(found.ids)
print(found.shared)
engine.close()
"""


def show(engine: Engine) -> None:
    """Draw the page."""
    page.header(
        _("Tokenization"),
        _(
            "A tokenizer splits the bytes of the text into pieces from its vocabulary. Here the server's own "
            "tokenizer does it."
        ),
    )
    if conversation.is_on():
        chat.template_field(None, engine.name)
    text = require_text()
    facts = engine_facts.of(engine)
    if conversation.is_on():
        _say_template(engine)
    if facts.tokenizer is None:
        st.info(_("{name} offers no tokenizer.").format(name=f"**{engine.name}**"))
        link.stop()
    found = engines.ask(engine, ("tokens", text), lambda: engine.tokenize(text))
    if isinstance(text, ServedText) and text.ids is None:
        _say_count(engine, text, found)
    _sizes(text, found)
    _chips(engine, found)
    if found.adds_up:
        st.markdown("✓ " + _("The texts of the tokens together are the original text."))
    else:
        st.markdown(
            "✗ "
            + _("The texts of the tokens together are not the original text: the server changes it, or adds to it.")
        )
        composed(text, "".join(found.shared))
    page.numbers_table(table(found), "tokens")
    page.snippet(CODE.format(name=engine.name, prompt=text))
    page.try_next(
        page.Suggestion(_("An emoji of four bytes, and a rare character of three"), "tokenization", {"prompt": "😊龘"}),
        page.Suggestion(_("How probable was each of these tokens for the model?"), "logits"),
    )


def _say_template(engine: Engine) -> None:
    """Say who writes the conversation's text."""
    name = f"**{engine.name}**"
    if not st.session_state.get(conversation.TEMPLATE):
        st.caption(
            _(
                "The conversation is written by the server's own template: {name} was asked what it makes of it, and "
                "is sent just that."
            ).format(name=name)
        )
        return
    st.caption(
        _(
            "The conversation is written by the template typed here, and sent to {name} as one text, whose control "
            "strings are to be read as control tokens."
        ).format(name=name)
    )
    if "_token" in st.session_state[conversation.TEMPLATE]:
        st.caption(_("bos_token, eos_token and the like are empty in it: only the server knows them. Write them out."))


def _say_count(engine: Engine, text: str, found: ServerTokens) -> None:
    """Say whether the tokens below are as many as the server says it read of the same text as a prompt."""
    read = engines.ask(engine, ("counted", text), lambda: engine.counted(text))
    if read is None:
        st.caption(_("The server does not say how many tokens it reads of this text as a prompt."))
    elif read == len(found.ids):
        st.caption("✓ " + _("As a prompt, the server reads {n} tokens of this text, as many as below.").format(n=read))
    else:
        st.markdown(
            "✗ "
            + _(
                "As a prompt, the server reads {n} tokens of this text, not the {below} below: its tokenizer cuts "
                "control strings otherwise, or a token is put in front."
            ).format(n=read, below=len(found.ids))
        )


def table(found: ServerTokens) -> pd.DataFrame:
    """Return one row per token: id, text, and bytes where the server tells them."""
    group_of = [number for number, (first, end) in enumerate(found.groups) for _index in range(first, end)]
    return pd.DataFrame(
        {
            _("position"): range(len(found.ids)),
            "id": found.ids,
            _("token"): [visible(label) for label in found.labels],
            _("bytes (hex)"): ["" if token is None else token.hex(" ") for token in found.tokens],
            _("characters touched"): [visible(found.shared[group]) for group in group_of],
        }
    )


def _sizes(text: str, found: ServerTokens) -> None:
    values = {
        _("Characters"): f"{len(text):,}",
        _("UTF-8 bytes"): f"{len(text.encode()):,}",
        _("Tokens"): f"{len(found.ids):,}",
        _("Characters per token"): f"{len(text) / len(found.ids):.3f}",
    }
    with st.container(horizontal=True, gap="large"):  # wraps on a phone
        for name, value in values.items():
            st.metric(name, value, width="content")


def _chips(engine: Engine, found: ServerTokens) -> None:
    groups = [group for group in found.groups if group[1] <= MAX_DRAWN]
    if len(groups) < len(found.groups):
        shown = _("The first {shown:,} of {n:,} tokens are drawn; the table has all of them.")
        st.caption(shown.format(shown=groups[-1][1] if groups else 0, n=len(found.ids)))
    label = _("The prompt's tokens")
    if all(token is not None for token in found.tokens):
        st.caption(
            _(
                "Each chip shows the text, the bytes in hexadecimal and the id. ␣ is a space, ⏎ a new line. A "
                "bracket joins the tokens that share one character."
            )
        )
        tokens = [token or b"" for token in found.tokens]
        token_groups(tokens, found.ids, groups, key="tokenization.engine", label=label)
        return
    st.caption(
        _(
            "Each chip shows the text, the bytes in hexadecimal and the ids. {name} does not return the bytes "
            "of a token that is only a part of a character, so the tokens of one character are drawn as one "
            "chip."
        ).format(name=f"**{engine.name}**")
    )
    if "" in found.shared:
        st.caption(_("A chip without text is a control token. The server adds it, and the text does not show it."))
    texts = [shared.encode("utf-8", "surrogatepass") for shared in found.shared[: len(groups)]]
    ids = [" ".join(map(str, found.ids[first:end])) for first, end in groups]
    token_groups(texts, ids, [(n, n + 1) for n in range(len(groups))], key="tokenization.engine", label=label)
