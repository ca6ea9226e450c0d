"""One text under several vocabularies: where each splits it, and into how many tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from lmcore import LanguageModel
from lmcore.tokenizer.alignment import Cell as Aligned
from lmcore.tokenizer.alignment import align
from lmcore.tokenizer.cuts import Cuts
from lmcore.tokenizer.vocabularies import Vocabulary
from pages.common import link, page, widgets
from pages.common.text import _, visible
from pages.figures import theme
from pages.live.vocabulary_rows import Cell, Chip, Stretch, colour, vocabulary_rows
from pages.stages.tokenization import source, vocabularies
from pages.stages.tokenization.common import special_strings
from pages.stages.tokenization.round_trip import round_trips
from pages.stages.tokenization.vocabularies import Examined, title

WINDOW = 240  # characters that are drawn; of a longer text one chooses where
_EXAMPLES = 6

CODE = """
from lmcore.loading.vocabulary_files import load_vocabulary
from lmcore.tokenizer.cuts import Landmarks, measure

text = {text}
marks = Landmarks.of(text)
for name in {names!r}:
    cuts = load_vocabulary(name).cut(text, special_tokens={control})
    found = measure(marks, cuts)
    print(name, found.tokens, found.characters_per_token, found.bytes_per_token, len(found.broken_words))
"""


def show(lm: LanguageModel) -> None:
    """Draw the view; the model has no part in it."""
    controls, picture = page.workbench()
    with controls:
        found = vocabularies.picker()
        text = source.choose()
        control = special_strings() == "control"
    with picture:
        if not text or not found:
            st.info(_("Choose a vocabulary and enter a text."))
            link.stop()
        examined = {name: vocabularies.examine(name, text, vocabulary, control) for name, vocabulary in found.items()}
        start = _start(text)
        rows(
            text,
            start,
            [Split(title(name), found[name], each.cuts) for name, each in examined.items()],
            key="compare.rows",
        )
        st.caption(
            _(
                "Tokens above one another stand for the same bytes. An orange edge means that the token begins "
                "inside a word. Small numbers are ids, each from its own vocabulary."
            )
        )
        st.caption(
            _("{n:,} characters, {n_bytes:,} bytes. Tokenized in {seconds:.2f} s by all vocabularies together.").format(
                n=len(text), n_bytes=len(text.encode()), seconds=sum(each.seconds for each in examined.values())
            )
        )
        page.figure(
            theme.bars(
                [each.measured.characters_per_token for each in examined.values()],
                [title(name) for name in examined],
                kind="amount",
                value_title=_("characters per token"),
                colours=[colour(index) for index in range(len(examined))],
            ),
            "compare.characters",
            _("Characters per token of each vocabulary on this text: a longer bar means fewer tokens."),
        )
        st.markdown(
            _(
                "The same text, split by several vocabularies. A larger vocabulary needs fewer tokens but a larger "
                "embedding table. Text like that the vocabulary was built from becomes words; text it has hardly "
                "seen becomes bytes."
            )
        )
    page.numbers_table(
        comparison_table(text, found, examined),
        "vocabularies",
        formats(),
    )
    round_trips(text, start, WINDOW, found, examined)
    page.snippet(
        CODE.format(
            text=_as_code(text), names=[name for name in found if name != vocabularies.TRAINED], control=control
        )
    )


@dataclass(frozen=True)
class Split:
    """One way to split the text: its name, its vocabulary, the cuts, and the note under each token.

    `notes` has a note for each token of the cuts; without them it is the id that stands there.
    """

    name: str
    vocabulary: Vocabulary
    cuts: Cuts
    notes: Sequence[str] = ()


def rows(text: str, start: int, ways: Sequence[Split], *, key: str) -> None:
    """Draw the rows of chips for the characters from `start` on, as many as are drawn."""
    places = vocabularies.landmarks(text).places
    end = min(start + WINDOW, len(text))
    data = text[start:end].encode()
    first = int(places[start])
    inside = _inside_words(text, start, end)

    def cell(which: int, aligned: Aligned) -> Cell:
        way = ways[which]
        chips = [
            Chip(
                way.vocabulary.token_bytes(int(way.cuts.ids[index])),
                int(way.cuts.ids[index]),
                int(way.cuts.starts[index]) in inside,
                way.notes[index] if way.notes else "",
            )
            for index in aligned.tokens
        ]
        return Cell(aligned.first, aligned.last, chips)

    stretches = [
        Stretch(
            data[segment.start - first : segment.end - first].decode("utf-8", errors="replace"),
            segment.columns,
            [[cell(which, aligned) for aligned in row] for which, row in enumerate(segment.rows)],
        )
        for segment in align([way.cuts for way in ways], first, int(places[end]))
    ]
    vocabulary_rows([way.name for way in ways], stretches, key=key, label=_("The text in each vocabulary"))


def comparison_table(text: str, found: Mapping[str, Vocabulary], examined: Mapping[str, Examined]) -> pd.DataFrame:
    """Return one row per vocabulary: its size, and its figures for the text."""
    lines = []
    for name, each in examined.items():
        measured = each.measured
        words = [visible(text[a:b]) for a, b in measured.broken_words[:_EXAMPLES].tolist()]
        lines.append(
            {
                _("vocabulary"): title(name),
                "V": found[name].vocab_size,
                _("tokens"): measured.tokens,
                _("characters per token"): measured.characters_per_token,
                _("bytes per token"): measured.bytes_per_token,
                _("words"): measured.words,
                _("words split"): len(measured.broken_words),
                _("characters split"): measured.split_characters,
                _("split words"): ", ".join(words) + ("…" if len(measured.broken_words) > _EXAMPLES else ""),
            }
        )
    return pd.DataFrame(lines)


def formats() -> dict[str, str]:
    """Return the formats of the table's columns."""
    return {"V": "count", _("tokens"): "count", _("characters per token"): "%.3f", _("bytes per token"): "%.3f"}


def _start(text: str) -> int:
    """Let the reader choose which part of a long text is drawn; a new text is drawn from its beginning."""
    if len(text) <= WINDOW:
        return 0
    last = (len(text) - 1) // WINDOW * WINDOW
    if link.remember("tokenization.from", 0, int) > last:
        st.session_state["tokenization.from"] = 0
    start = widgets.slider(
        "tokenization.from",
        _("Show from character"),
        0,
        last,
        0,
        step=WINDOW,
        help=_("{n} characters are drawn; the numbers are for the whole text.").format(n=WINDOW),
    )
    return start


def _inside_words(text: str, start: int, end: int) -> set[int]:
    """Return the bytes at which a token would begin inside a word."""
    marks = vocabularies.landmarks(text)
    low, high = int(marks.places[start]), int(marks.places[end])
    words = marks.places[marks.words[(marks.words[:, 0] < end) & (marks.words[:, 1] > start)]]
    return {byte for first, last in words.tolist() for byte in range(max(first + 1, low), min(last, high))}


def _as_code(text: str) -> str:
    """Return Python for a text: written out while it is short."""
    if len(text) <= 4 * WINDOW:
        return repr(text)
    if text == text[0] * len(text):
        return f"{text[0]!r} * {len(text)}"
    return 'open("text.txt", encoding="utf-8").read()'
