"""The BPE vocabulary that the reader trains: from which text, how far, with how many of its merges."""

from __future__ import annotations

import threading
from itertools import islice

import streamlit as st

from lmcore.loading.vocabulary_files import sample_text
from lmcore.tokenizer.bpe_training import LearnedMerge, learn_merges, split_words, tokenizer_of
from lmcore.tokenizer.vocabularies import OfTokenizer
from lmcore.worker import Worker, each_of
from pages.common import link
from pages.common.shared import shared
from pages.common.text import _

TEXT = "training"  # the name of the text it learns from, as `source.pasted` keeps it
MOST_MERGES = 1000
_SAMPLE_CHARACTERS = 15_000
_RUN = "tokenization.bpe"
_SLOTS = threading.BoundedSemaphore(2)
_REFRESH = 0.4  # seconds


@shared()
def sample() -> str:
    """Return a text of the small world, the one that the built-in models learned from."""
    return sample_text(_SAMPLE_CHARACTERS)


def training(text: str) -> Worker[LearnedMerge]:
    """Return the training on this text, ended; while it is under way the page shows how far it is, and goes no further.

    It is started when there is none; that on another text ends.
    """
    known = st.session_state.get(_RUN)
    if known is None or known[0] != text:
        merges = each_of(lambda: islice(learn_merges(split_words(text)), MOST_MERGES))
        run = Worker(merges, name="merges", slots=_SLOTS, rest=lambda took: took / 4)
        known = st.session_state[_RUN] = (text, run)
        run.join(1.0)  # most are done at once, and need no progress
    if known[1].running:
        st.fragment(_watch, run_every=_REFRESH)(known[1])
        link.stop()
    return known[1]


def merges_in_use(learned: list[LearnedMerge]) -> int:
    """Return how many of the merges the reader takes, as the slider has it."""
    n = link.remember("bpe_merges", min(100, len(learned)), int)
    if not 0 <= n <= len(learned):
        n = st.session_state["bpe_merges"] = min(max(n, 0), len(learned))
    return n


def vocabulary() -> OfTokenizer:
    """Return the vocabulary of the text trained on last, with the merges in use; a first one learns from the sample."""
    learned = list(training(st.session_state.get(f"tokenization.{TEXT}", sample())).items)
    return OfTokenizer(tokenizer_of(merge.pair for merge in learned[: merges_in_use(learned)]))


def _watch(run: Worker[LearnedMerge]) -> None:
    """Draw how far it is, until it has ended."""
    done = len(run.items)
    st.progress(done / MOST_MERGES, text=_("{n:,} of at most {most:,} merges").format(n=done, most=MOST_MERGES))
    if st.button(_("Stop"), key="train.stop"):
        run.stop()
        run.join()
    if not run.running:
        st.rerun()
