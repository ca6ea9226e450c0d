"""The limits of all pages, read from where they are set."""

from __future__ import annotations

import streamlit as st

from lmcore.generation import tree_file
from lmcore.training import texts
from pages.common import session
from pages.common.forward import LARGEST_PASS
from pages.common.text import _
from pages.stages.generation import runs
from pages.stages.logits import several
from pages.stages.sampling import drawing, sources
from pages.stages.tokenization import source
from pages.stages.training.live import MOST_STEPS, WIDEST


def rows() -> list[tuple[str, str]]:
    """Return what is limited, and by how much."""
    return [
        (
            _("Prompt"),
            _("{n:,} characters, and as many tokens as the model's context").format(n=session.MAX_CHARACTERS),
        ),
        (
            _("Memory for all that is computed from one prompt"),
            _("{size:.1f} GB; a model that needs more takes fewer tokens").format(size=LARGEST_PASS / 1e9),
        ),
        (_("Long text that is cut into tokens"), _("{n:,} characters").format(n=source.MAX_CHARACTERS)),
        (
            _("Several texts scored at once"),
            _("{texts:,} texts of {n:,} characters each").format(texts=several.MAX_TEXTS, n=several.MAX_CHARACTERS),
        ),
        (_("Own logits"), _("{n:,} characters").format(n=sources.MAX_CHARACTERS)),
        (_("Draws at a press"), f"{drawing.MAX_DRAWS:,}"),
        (_("Generated text"), _("the model's context; {n} texts are kept").format(n=runs.MAX_RUNS)),
        (
            _("A tree of texts as a file"),
            _("{size:g} MB and {n:,} tokens").format(size=tree_file.MAX_BYTES / 2**20, n=tree_file.MAX_NODES),
        ),
        (
            _("Training in the browser"),
            _("{steps:,} steps, d_model {width}, own text of {n:,} characters").format(
                steps=MOST_STEPS, width=WIDEST, n=texts.MAX_CHARACTERS
            ),
        ),
        (_("Uploaded file"), _("{size} MB").format(size=st.get_option("server.maxUploadSize"))),
        (
            _("Download"),
            _("what the page shows, in full: a row for each token of the text or of the vocabulary"),
        ),
    ]
