"""The limits of all pages, read from where they are set."""

from __future__ import annotations

import streamlit as st

from lmcore.analysis.logits.texts import MAX_CHARACTERS
from lmcore.generation import tree_file
from lmcore.training import texts
from pages.common import session
from pages.common.forward import LARGEST_PASS
from pages.common.text import _
from pages.common.texts import MAX_TEXTS
from pages.stages.generation import runs
from pages.stages.sampling import drawing, sources
from pages.stages.tokenization import source
from pages.stages.training.live import MOST_STEPS, WIDEST


def rows() -> list[tuple[str, str]]:
    """Return every limit and its value."""
    return [
        (
            _("Prompt"),
            _("{n:,} characters, and no more tokens than the model's context").format(n=session.MAX_CHARACTERS),
        ),
        (
            _("Memory for everything computed from one prompt"),
            _("{size:.1f} GB; with a larger model, fewer tokens fit").format(size=LARGEST_PASS / 1e9),
        ),
        (_("Long text to tokenize"), _("{n:,} characters").format(n=source.MAX_CHARACTERS)),
        (
            _("Several texts scored at once"),
            _("{texts:,} texts of {n:,} characters each").format(texts=MAX_TEXTS, n=MAX_CHARACTERS),
        ),
        (_("Your own logits"), _("{n:,} characters").format(n=sources.MAX_CHARACTERS)),
        (_("Draws per press"), f"{drawing.MAX_DRAWS:,}"),
        (_("Generated text"), _("the model's context; {n} texts are kept").format(n=runs.MAX_RUNS)),
        (
            _("A saved tree of texts"),
            _("{size:g} MB and {n:,} tokens").format(size=tree_file.MAX_BYTES / 2**20, n=tree_file.MAX_NODES),
        ),
        (
            _("Training in the browser"),
            _("{steps:,} steps, d_model {width}, {n:,} characters of your own text").format(
                steps=MOST_STEPS, width=WIDEST, n=texts.MAX_CHARACTERS
            ),
        ),
        (_("Uploaded file"), _("{size} MB").format(size=st.get_option("server.maxUploadSize"))),
        (
            _("Download"),
            _("everything the page shows: a row for each token of the text or of the vocabulary"),
        ),
    ]
