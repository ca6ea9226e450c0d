"""What is in the vocabulary: search it, its longest tokens, its scripts, its special tokens."""

from __future__ import annotations

from typing import cast

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from lmcore import LanguageModel
from lmcore.tokenizer import Tokenizer
from lmcore.tokenizer.vocabulary_index import (
    DIGITS,
    MIXED,
    OTHER,
    PART,
    SIGNS,
    SPACES,
    SPECIAL,
    How,
    VocabularyIndex,
)
from pages.common import link, page, widgets
from pages.common.shared import shared
from pages.common.text import _, markdown_literal, visible
from pages.figures import theme
from pages.live.token_groups import token_groups
from pages.stages.tokenization.common import follow

_CHIPS, _ROWS, _BARS = 36, 500, 14

CODE = """
import lmcore
from lmcore.tokenizer.vocabulary_index import VocabularyIndex

index = VocabularyIndex(lmcore.load({name!r}).tokenizer)
found = {found}
for token_id in found[:20]:
    print(token_id, index.tokens[token_id])
print(index.by_script().most_common(5))
"""


@shared(entries=4, doing="Reading the vocabulary · 正在读取词表")
def _index(name: str, _tokenizer: Tokenizer) -> VocabularyIndex:
    return VocabularyIndex(_tokenizer)


def show(lm: LanguageModel) -> None:
    """Draw the view."""
    index = _index(lm.name, lm.tokenizer)
    lists = {
        "search": _("Search"),
        "longest": _("The longest"),
        "scripts": _("By script"),
        "special": _("Special tokens"),
    }
    controls, picture = page.workbench()
    with controls:
        chosen = widgets.choice("vocabulary.list", _("Show"), list(lists), "search", format_func=lists.__getitem__)
        find = {"search": _search, "longest": _longest, "scripts": _by_script, "special": _special}[chosen]
        found, code = find(lm, index, picture)
    with picture:
        if found:
            _results(lm, index, found)
        st.markdown(
            _(
                "All {n:,} tokens of {model}. Each is a sequence of bytes that was frequent in the text the "
                "vocabulary was built from, so the vocabulary shows what that text was like."
            ).format(n=len(index.tokens), model=markdown_literal(lm.name))
        )
    page.snippet(CODE.format(name=lm.name, found=code))


def _search(lm: LanguageModel, index: VocabularyIndex, picture: DeltaGenerator) -> tuple[list[int], str]:
    kinds = {"text": _("text"), "bytes": _("bytes (hex)"), "id": "id"}
    hows = {"contains": _("contains"), "begins": _("begins with"), "is": _("is")}
    query = widgets.text("vocabulary.query", _("Search"), "天", max_chars=80, help=_("Spaces matter: try “ the”."))
    kind = widgets.choice("vocabulary.by", _("Input is"), list(kinds), "text", format_func=kinds.__getitem__)
    how = widgets.choice("vocabulary.how", _("The token"), list(hows), "contains", format_func=hows.__getitem__)
    found: list[int] = []
    try:
        wanted = bytes.fromhex(query) if kind == "bytes" else query.encode()
        if kind == "id":
            found = [int(query)] if 0 <= int(query) < len(index.tokens) else []
        else:
            found = index.search(wanted, cast(How, how))
    except ValueError:
        st.info(
            _("This is not an id. Enter a whole number from 0 to {last:,}.").format(last=len(index.tokens) - 1)
            if kind == "id"
            else _("These are not bytes in hexadecimal. Enter pairs of digits, such as e5 a4 a9.")
        )
        return [], "[]"
    st.markdown(_("**{n:,}** of {total:,} tokens.").format(n=len(found), total=len(index.tokens)))
    return found, str(found) if kind == "id" else f"index.search({wanted!r}, {how!r})"


def _longest(lm: LanguageModel, index: VocabularyIndex, picture: DeltaGenerator) -> tuple[list[int], str]:
    n = widgets.slider("vocabulary.longest", _("How many"), 10, 200, 40, step=10)
    return index.longest(n), f"index.longest({n})"


def _by_script(lm: LanguageModel, index: VocabularyIndex, picture: DeltaGenerator) -> tuple[list[int], str]:
    counts = index.by_script().most_common()
    first, rest = counts[:_BARS], counts[_BARS:]
    names = [script_name(script) for script, _n in first] + ([_("{n} more").format(n=len(rest))] if rest else [])
    values = [n for _script, n in first] + ([sum(n for _script, n in rest)] if rest else [])
    script = widgets.select(
        "vocabulary.script", _("Script"), [s for s, _n in counts], counts[0][0], format_func=script_name
    )
    chart = theme.bars(values, names, kind="amount", value_title=_("tokens"))
    chart.update_traces(
        text=[f"{n:,} · {n / len(index.tokens):.1%}" for n in values], hovertemplate="%{customdata}: %{text}"
    )
    with picture:
        page.figure(chart, "vocabulary.scripts", _("The number of tokens in each script."))
    return index.of_script(script), f"index.of_script({script!r})"


def _special(lm: LanguageModel, index: VocabularyIndex, picture: DeltaGenerator) -> tuple[list[int], str]:
    found = sorted(lm.tokenizer.special_tokens.values())
    st.markdown(
        _("**{n:,}** special tokens: ordinary text never becomes one of them, unless you choose so.").format(
            n=len(found)
        )
    )
    return found, f"sorted(lmcore.load({lm.name!r}).tokenizer.special_tokens.values())"


def _results(lm: LanguageModel, index: VocabularyIndex, found: list[int]) -> None:
    shown = found[:_CHIPS]
    chosen = link.remember("vocabulary.token", shown[0], int)
    if chosen not in shown:
        chosen = st.session_state["vocabulary.token"] = shown[0]
    token_groups(
        [index.tokens[token_id] for token_id in shown],
        shown,
        [(number, number + 1) for number in range(len(shown))],
        key="vocabulary.chips",
        label=_("Tokens that were found"),
        selected=shown.index(chosen),
        on_select=lambda number: st.session_state.update({"vocabulary.token": shown[number]}),
    )
    follow(
        _("See the neighbours of {token} (id {token_id}) in the embedding").format(
            token=markdown_literal(index.tokens[chosen]), token_id=chosen
        ),
        {"table.view": "neighbours", "token": chosen},
    )
    if len(found) > _ROWS:
        st.caption(_("The table lists the first {n:,}.").format(n=_ROWS))
    rows = found[:_ROWS]
    page.numbers_table(
        pd.DataFrame(
            {
                "id": rows,
                _("token"): [visible(index.tokens[i]) for i in rows],
                _("bytes (hex)"): [index.tokens[i].hex(" ") for i in rows],
                _("bytes"): [len(index.tokens[i]) for i in rows],
                _("Characters"): [len(index.tokens[i].decode("utf-8", errors="ignore")) for i in rows],
                _("script"): [script_name(index.scripts[i]) for i in rows],
            }
        ),
        "vocabulary",
    )


def script_name(script: str) -> str:
    """Return a script's name in the reader's language, where there is one."""
    known = {
        PART: _("part of a character"),
        SPECIAL: _("special"),
        MIXED: _("several scripts"),
        OTHER: _("other letters"),
        DIGITS: _("digits"),
        SIGNS: _("punctuation and symbols"),
        SPACES: _("spaces and controls"),
        "Latin": _("Latin"),
        "Han": _("Han"),
        "Cyrillic": _("Cyrillic"),
        "Arabic": _("Arabic"),
        "Hangul": _("Hangul"),
        "Hiragana": _("Hiragana"),
        "Katakana": _("Katakana"),
        "Greek": _("Greek"),
        "Thai": _("Thai"),
        "Hebrew": _("Hebrew"),
        "Devanagari": _("Devanagari"),
    }
    return known.get(script, script)
