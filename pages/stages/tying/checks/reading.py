"""Checks of what numbers mean: a logit is no similarity, and an id belongs to a tokenizer."""

from __future__ import annotations

import lmcore
from lmcore import LanguageModel
from lmcore.analysis import read_out
from lmcore.tokenizer.word_level import TOY_VOCABULARY, WordLevelTokenizer
from pages.common import page, session, widgets
from pages.common.text import _, visible
from pages.figures.theme import fmt_count
from pages.stages.tying.checks.card import Check

TEXT = "今天天气不错，我喜欢猫"


def measured_model(lm: LanguageModel) -> LanguageModel:
    """Return the chosen model if it is a built-in one, else the default: checks are to be quick on any machine."""
    return lm if lm.name in lmcore.builtin.names() else session.language_model(lmcore.builtin.DEFAULT)


def similarity(lm: LanguageModel) -> Check:
    """Check whether the largest logit is the most similar token."""
    chosen = measured_model(lm)
    ids = chosen.tokenizer.encode(TEXT).ids
    hidden = session.trace(ids, chosen.name)["hidden_state"]
    head = chosen.model.head
    found = [read_out(vector, head.weight, head.bias) for vector in hidden]
    winners = [(int(out.logits.argmax()), int(out.cosines.argmax())) for out in found]
    differ = [position for position, (largest, nearest) in enumerate(winners) if largest != nearest]
    position = widgets.slider("checks.position", _("Position"), 0, len(ids) - 1, differ[0] if differ else 0)
    out, (largest, nearest) = found[position], winners[position]

    def line(token: int) -> str:
        name = visible(chosen.tokenizer.token_bytes(token))
        return (
            f"{name} · {token}: |h| |e| cos = {out.length:.3f} x {out.row_lengths[token]:.3f} x "
            f"{out.cosines[token]:.4f} = {out.products[token]:.3f}"
        )

    return Check(
        _("The logit of a token is its similarity to the hidden state."),
        _("largest cosine has largest logit"),
        _("{n} of {m} differ").format(n=len(differ), m=len(ids)),
        f"{chosen.name} · {visible(chosen.tokenizer.decode_bytes(ids[: position + 1]))} →\n"
        f"{_('largest logit')}: {line(largest)}\n{_('nearest by cosine')}: {line(nearest)}",
        _(
            "A logit is a dot product, so it also grows with the length of the row. At **{n}** of {m} "
            "positions of this text, the nearest token by cosine is not the token with the largest logit."
        ).format(n=len(differ), m=len(ids)),
        page.Suggestion(
            _("Length and angle of every token"),
            "logits",
            {"logits.view": "dot", "prompt": TEXT, "position": position, "model": chosen.name},
        ),
    )


def whose_ids(lm: LanguageModel) -> Check:
    """Check the ids of a text under several named tokenizers."""
    text = widgets.text("checks.text", _("Text"), "今天天气", max_chars=40)
    names = dict.fromkeys([lmcore.builtin.DEFAULT, lm.name])
    rows = {"toy": (len(TOY_VOCABULARY), WordLevelTokenizer(TOY_VOCABULARY).encode(text))}
    for name in names:
        tokenizer = session.language_model(name).tokenizer
        rows[name] = (tokenizer.vocab_size, tokenizer.encode(text).ids)
    rows["UTF-8"] = (256, list(text.encode()))
    return Check(
        _("今天天气 is two ids, or three, in a tutorial with d_model 768 and a real vocabulary."),
        _("2 or 3 ids"),
        " · ".join(str(len(ids)) for _size, ids in rows.values()),
        "\n".join(f"{name} (V = {fmt_count(size)}): {ids}" for name, (size, ids) in rows.items()),
        _(
            "Ids have a meaning only with a named tokenizer. Above are a toy vocabulary of six entries, "
            "{names}, and plain bytes. Choose another model at the top of the page to see its ids."
        ).format(names=", ".join(f"`{name}`" for name in names)),
        page.Suggestion(_("This text in the chosen model's tokens"), "tokenization", {"prompt": text}),
    )
