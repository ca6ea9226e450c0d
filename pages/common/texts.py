"""A list of texts that the reader pastes or opens as a file; one for all pages."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from lmcore import LanguageModel
from lmcore.analysis.logits.texts import MAX_CHARACTERS, Line, Problem, read_file, read_texts
from pages.common.text import _, in_language, ngettext, visible

MAX_TEXTS = 1000
_PASTED = "several.pasted"
_EXAMPLES = {
    "en": "The weather today is nice\nThe weather today is cat\nTom likes Mary",
    "zh": "今天天气很好\n今天天气苹果\n小明喜欢小红",
}


def are_examples() -> bool:
    """Whether what `choose` gave are the examples that a reader meets there first."""
    return st.session_state["several.file"] is None and st.session_state[_PASTED] in _EXAMPLES.values()


def choose() -> list[Line]:
    """Let the reader paste texts or choose a file, and return the texts."""
    file = st.file_uploader(
        _("A file: .txt with one text per line, .csv with a column named text, or .jsonl"),
        type=["txt", "csv", "jsonl"],
        max_upload_size=1,
        key="several.file",
    )
    now = st.session_state.setdefault(_PASTED, in_language(_EXAMPLES))
    pasted = st.text_area(
        _("Or a list, one text per line"),
        now,
        key=_PASTED,
        height=200,
        max_chars=200_000,
        persist_state="session",
        disabled=file is not None,
    )
    lines = read_texts(pasted.encode("utf-8", "replace")) if file is None else read_file(file.name, file.getvalue())
    told = ngettext("{n} text", "{n} texts", len(lines)).format(n=f"{len(lines):,}")
    if len(lines) > MAX_TEXTS:
        told += " · " + _("only the first {n} are scored").format(n=f"{MAX_TEXTS:,}")
    st.caption(told)
    return lines[:MAX_TEXTS]


def say_problems(lm: LanguageModel, bad: Sequence[tuple[Line, Problem]]) -> None:
    """Say which texts a model did not score, and why."""
    reasons = {
        "not UTF-8": _("not UTF-8 text"),
        "not CSV": _("not a CSV row"),
        "not JSON": _("neither a JSON string nor a JSON object with a text"),
        "one token": _("a single token, which cannot be scored"),
        "too long": _("longer than {characters:,} characters or the context of {n:,} tokens").format(
            characters=MAX_CHARACTERS, n=lm.config.context_length
        ),
    }
    if bad:
        shown = [
            _("Line {n}: {reason} · {text}").format(
                n=line.number, reason=reasons[problem], text=visible(line.text[:40])
            )
            for line, problem in bad[:10]
        ]
        if len(bad) > len(shown):
            shown.append(_("and {n} more").format(n=len(bad) - len(shown)))
        st.text(_("Not scored:") + "\n" + "\n".join(shown))
