"""The same conversation as another template, another model or an engine writes it, beside the model's own text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

import pandas as pd
import streamlit as st

from lmcore import Encoding, LanguageModel, chat
from lmcore.engines.errors import EngineError
from lmcore.loading.vocabulary_files import BUILTIN, BYTES, CHARACTERS, SCORED, available_vocabularies, load_chat
from lmcore.tokenizer import Tokenizer
from pages.common import conversation, engines, page, widgets
from pages.common.conversation import Conversation
from pages.common.shared import shared
from pages.common.text import _, markdown_literal, readable, visible
from pages.live.chat_rows import Row, Tokens, chat_rows
from pages.stages.tokenization.vocabularies import title

KEY = "chat.second"
_NONE, _OWN, _NAMED, _MODEL, _ENGINE = "", "own", "named:", "model:", "engine:"
_NO_MODEL = (BUILTIN, CHARACTERS, BYTES, SCORED)  # vocabularies of models without a template, or of none

CODE = """
{code}
for row in chat.aligned(rendered, other):
    print(row.message, row.field, row.is_same, row.left, row.right)
"""
_MODEL_CODE = """from lmcore.loading.vocabulary_files import load_chat

_tokenizer, template = load_chat({name!r})
other = chat.render(template, messages, **options)"""
_ENGINE_CODE = """from lmcore.engines.config import configured
from lmcore.engines.engine import Engine

engine = Engine(next(config for config in configured() if config.name == {name!r}))
other = engine.rendered(messages, **options).text
engine.close()"""


@dataclass(frozen=True)
class Second:
    """What is compared with.

    Attributes:
        name: on screen.
        template: it, where it is known.
        tokenizer: what makes ids of its text.
        elsewhere: what a server made of the conversation.
        code: lines of Python that give what it writes the name `other`.
    """

    name: str
    tokenizer: Tokenizer
    template: chat.ChatTemplate | None = None
    elsewhere: chat.Elsewhere | None = None
    code: str = ""


def choose(lm: LanguageModel, used: chat.ChatTemplate, now: Conversation) -> Second | None:
    """Let the reader choose what to compare with, and return it; None for nothing, or what has no template."""
    choices = _choices(lm, used)
    chosen = widgets.select(KEY, _("Compare with"), list(choices), _NONE, format_func=choices.__getitem__)
    kind, _colon, name = chosen.partition(":")
    if chosen == _OWN and lm.chat_template is not None:
        named = replace(lm.chat_template, filename=lm.name)
        code = "other = chat.render(lm.chat_template, messages, **options)"
        return Second(_("the model's own template"), lm.tokenizer, named, code=code)
    if kind == "named":
        source = (lm.chat_template or used).named[name]
        code = f"other = chat.render(lm.chat_template.named[{name!r}], messages, **options)"
        return Second(name, lm.tokenizer, replace(used, source=source, named={}, filename=name), code=code)
    if kind == "model":
        return _of_model(name)
    return _of_engine(lm, name, now) if kind == "engine" else None


def _choices(lm: LanguageModel, used: chat.ChatTemplate) -> Mapping[str, str]:
    own = lm.chat_template
    found = {_NONE: _("no other text")}
    if own is not None and own.source != used.source:
        found[_OWN] = _("the model's own template")
    if own is not None:
        found |= {_NAMED + name: _("its template {name}").format(name=visible(name)) for name in own.named}
    models = [name for name, there in available_vocabularies().items() if there and name not in _NO_MODEL]
    found |= {_MODEL + name: title(name) for name in models if name.removesuffix(".gguf") != lm.name}
    return found | {_ENGINE + name: _("the engine {name}").format(name=visible(name)) for name in engines.names()}


@shared(entries=4, doing="Reading the template · 正在读取模板")
def _chat_of(name: str) -> tuple[Tokenizer, chat.ChatTemplate | None]:
    return load_chat(name)


def _of_model(name: str) -> Second | None:
    try:
        tokenizer, template = _chat_of(name)
    except ValueError as error:
        st.text(readable(str(error)))
        return None
    if template is None:
        st.caption(_("{name} has no chat template: its files hold none.").format(name=markdown_literal(title(name))))
        return None
    return Second(title(name), tokenizer, replace(template, filename=title(name)), code=_MODEL_CODE.format(name=name))


def _of_engine(lm: LanguageModel, name: str, now: Conversation) -> Second | None:
    engine = engines.find(name)
    if engine is None:
        return None
    options = now.options()

    def ask() -> chat.Elsewhere | EngineError | None:
        try:
            return engine.rendered(now.messages, **options)
        except EngineError as error:
            if error.kind not in ("refused", "failing"):
                raise
            return error  # of this conversation, which is no reason to show nothing else

    found = engines.ask(engine, ("chat", now.text), ask)
    if isinstance(found, EngineError):
        st.caption(_("{name} does not tell what it makes of this conversation:").format(name=markdown_literal(name)))
        st.text(readable(found.detail or str(found)))
        return None
    if found is None:
        st.caption(
            _("{name} has no endpoint that tells what it makes of a conversation.").format(name=markdown_literal(name))
        )
        return None
    return Second(name, lm.tokenizer, elsewhere=found, code=_ENGINE_CODE.format(name=name))


def show(rendered: chat.Rendered, found: Encoding, second: Second, now: Conversation, name: str) -> None:
    """Lay both texts side by side, with their ids."""
    try:
        other = _rendering(second, now)
    except ValueError as error:  # the findings say what it is where both are one model's
        st.text(readable(str(error)))
        return
    text = other if isinstance(other, str) else other.text
    theirs = _encoding(second, text)
    rows = chat.aligned(rendered, other)
    sides = (rendered.text, found), (text, theirs)
    names = name, second.name
    chat_rows(
        [Row(_label(row, now.messages), row.message, row.is_same, *_tokens(row, sides)) for row in rows],
        names,
        key="chat.rows",
        label=_("The conversation as both write it"),
    )
    st.caption(
        _(
            "One row is the same place of the conversation: a message's field, or what a template writes between two. "
            "Rows that differ have an orange edge. Small numbers are ids, each from its own vocabulary."
        )
        + " "
        + (
            _("{left:,} ids on the left, {right:,} on the right.").format(left=len(found), right=len(theirs))
            if theirs is not None
            else _("{name} does not tell its ids, or reads another text from them.").format(
                name=markdown_literal(second.name)
            )
        )
    )
    page.numbers_table(_table(rows, sides, names, now.messages), "templates")


def _rendering(second: Second, now: Conversation) -> chat.Rendered | str:
    if second.elsewhere is not None:
        return second.elsewhere.text
    assert second.template is not None
    return conversation.rendered_by(second.name, second.template, now)


def _encoding(second: Second, text: str) -> Encoding | None:
    """Return the other text's tokens: of a server its own ids, None where it tells none that read back as this text."""
    if second.elsewhere is None:
        return second.tokenizer.encode(text, special_tokens=True, add_first=False)
    ids = second.elsewhere.ids
    if ids is None or not all(0 <= each < second.tokenizer.vocab_size for each in ids):
        return None
    tokens = [second.tokenizer.token_bytes(each) for each in ids]
    whole, data = b"".join(tokens), text.encode()
    if not whole.endswith(data):  # a BOS in front need not be in the text
        return None
    characters = [number for number, character in enumerate(text) for _byte in character.encode()]
    edges = accumulate(map(len, tokens), initial=len(data) - len(whole))
    places = [len(text) if edge >= len(data) else characters[edge] if edge > 0 else 0 for edge in edges]
    return Encoding(text, list(ids), tokens, list(pairwise(places)))


def _tokens(row: chat.AlignedRow, sides: Sequence[tuple[str, Encoding | None]]) -> list[Tokens | None]:
    """Return the tokens that begin in each of a row's places; where no ids are known, the text in one piece."""
    found: list[Tokens | None] = []
    for place, (text, encoding) in zip((row.left, row.right), sides, strict=True):
        if place is None or encoding is None:
            found.append(None if place is None else [(text[slice(*place)].encode(), "")])
        else:
            found.append([(encoding.tokens[i], encoding.ids[i]) for i in chat.tokens_in(encoding, place)])
    return found


def _label(row: chat.AlignedRow, messages: Sequence[Mapping[str, object]]) -> str:
    if row.message is not None:
        return _("message {n} ({role}): {field}").format(
            n=row.message + 1, role=visible(str(messages[row.message].get("role"))), field=visible(row.field)
        )
    return _("generation prompt") if row.in_prompt else _("the template's own words")


def _table(
    rows: Sequence[chat.AlignedRow],
    sides: Sequence[tuple[str, Encoding | None]],
    names: Sequence[str],
    messages: Sequence[Mapping[str, object]],
) -> pd.DataFrame:
    columns: dict[str, list[Any]] = {_("place"): [_label(row, messages) for row in rows]}
    tokens = [_tokens(row, sides) for row in rows]
    for side, ((text, _encoding), name) in enumerate(zip(sides, names, strict=True)):
        places = [(row.left, row.right)[side] for row in rows]
        said = ["" if place is None else visible(text[slice(*place)]) for place in places]
        columns[_("text of {name}").format(name=name)] = said
        columns[_("ids of {name}").format(name=name)] = [
            " ".join(str(token_id) for _token, token_id in each[side] or ()) for each in tokens
        ]
    return pd.DataFrame(columns | {_("same text"): [row.is_same for row in rows]})
