"""A BPE vocabulary learned here and now from a text: merges one by one, the text shrinking, and the result compared."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from lmcore import LanguageModel
from lmcore.tokenizer.bpe_training import LearnedMerge, growing, split_words, tokenizer_of
from lmcore.tokenizer.vocabularies import OfTokenizer
from pages.common import link, page, session
from pages.common.text import _, visible
from pages.figures.tokenization import merges as figures
from pages.live.merge_replay import Wording, merge_replay
from pages.stages.tokenization import compare, source, trained, vocabularies

MAX_CHARACTERS = 100_000
_WATCHED = 160  # characters of the training text whose pieces are shown

CODE = """
from itertools import islice
from lmcore.tokenizer.bpe_training import learn_merges, split_words, tokenizer_of

text = open("text.txt", encoding="utf-8").read()   # what you pasted above
learned = list(islice(learn_merges(split_words(text)), {n}))
for merge in learned[-5:]:
    print(merge.pair, merge.count, merge.n_tokens)
print(tokenizer_of(merge.pair for merge in learned).encode({prompt!r}).tokens)
"""


def show(lm: LanguageModel) -> None:
    """Draw the view; the model has no part in it."""
    st.markdown(
        _(
            "Training a BPE vocabulary means counting: the most frequent pair of adjacent pieces becomes a new "
            "token, again and again. It begins with 256 tokens, one for each byte. Move the slider to see the "
            "vocabulary grow and the text shrink, or paste your own text to see which words become tokens."
        )
    )
    text = source.pasted(trained.TEXT, trained.sample(), MAX_CHARACTERS)
    run = trained.training(text)
    learned = run.items
    if run.state == "stopped":
        st.info(_("Stopped after {n:,} merges; what was learned is shown.").format(n=len(learned)))
    if not learned:
        st.info(_("No adjacent pair occurs twice in this text, so there is nothing to learn. Paste a longer text."))
        link.stop()
    _show_learned(text, learned)


def _show_learned(text: str, learned: list[LearnedMerge]) -> None:
    n = trained.merges_in_use(learned)
    words, pairs = split_words(text), [merge.pair for merge in learned]
    n_bytes = len(text.encode())
    watched = split_words(text[:_WATCHED])
    merge_replay(
        [bytes([byte]) for word in watched for byte in word],
        growing(watched, pairs),
        key="train.replay",
        step=n,
        on_step=lambda moved: st.session_state.update(bpe_merges=moved),
        notes=[{"count": each.count, "tokens": each.n_tokens, "size": 256 + i} for i, each in enumerate(learned, 1)],
        wording=Wording(
            label=_("Merges learned"),
            start=_("No merge yet: 256 tokens, one for each byte. The beginning of the text:"),
            step=_(
                "Merge {step}: {left} + {right} → {joined}, adjacent {count} times. {size} tokens in the "
                "vocabulary, {tokens} in the text. The beginning of the text:"
            ),
        ),
    )
    counts = [n_bytes, *(each.n_tokens for each in learned)]
    page.figure(
        figures.pieces_left(
            counts,
            [f"{visible(each.pair[0])} + {visible(each.pair[1])} · {each.count} ×" for each in learned],
            x_title=_("merges learned"),
            y_title=_("tokens of the text"),
            step=n,
        ),
        "train.tokens",
        _(
            "The number of tokens in the training text after each merge: from {start} bytes down to {end} tokens."
        ).format(start=counts[0], end=counts[-1]),
    )
    st.caption(
        _(
            "{words:,} words, {distinct:,} of them different. After {n} merges a token holds {size:.3f} bytes on "
            "average."
        ).format(words=len(words), distinct=len(set(words)), n=n, size=n_bytes / counts[n])
    )
    _compare(pairs[:n])
    page.numbers_table(
        pd.DataFrame(
            {
                _("merge"): range(1, len(learned) + 1),
                _("left"): [visible(each.pair[0]) for each in learned],
                _("right"): [visible(each.pair[1]) for each in learned],
                _("joined"): [visible(b"".join(each.pair)) for each in learned],
                _("times adjacent"): [each.count for each in learned],
                _("tokens of the text"): [each.n_tokens for each in learned],
            }
        ),
        "learned-merges",
    )
    page.snippet(CODE.format(n=n, prompt=session.prompt()))


def _compare(pairs: list[tuple[bytes, bytes]]) -> None:
    """Draw the prompt in the vocabulary of these merges beside others."""
    st.subheader(_("Compare with others on the prompt"), anchor=False)
    prompt = session.prompt()[: compare.WINDOW]
    others = vocabularies.picker()
    if not prompt:
        st.info(_("There is no text here. Type some."))
        return
    found = {vocabularies.TRAINED: OfTokenizer(tokenizer_of(pairs)), **others}
    examined = {name: vocabularies.examine(name, prompt, vocabulary) for name, vocabulary in found.items()}
    compare.rows(
        prompt,
        0,
        [compare.Split(vocabularies.title(name), found[name], each.cuts) for name, each in examined.items()],
        key="train.rows",
    )
    page.numbers_table(compare.comparison_table(prompt, found, examined), "trained-beside", compare.formats())
