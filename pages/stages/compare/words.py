"""What a comparison says, in the reader's language."""

from __future__ import annotations

import re

from lmcore.compare.findings import NOTHING, Finding, Stage
from lmcore.compare.hidden import StreamStep
from lmcore.sampling import Note
from pages.common.text import _, markdown_literal

_NUMBER = re.compile(r"[-+.0-9e]+")


def verdict(first: Finding | None) -> str:
    """Return the line that says where two runs part first, as Markdown."""
    if first is None:
        return f"**{_(NOTHING)}**"
    return _("**First difference: {stage}.** {sentence}").format(
        stage=stage_names()[first.stage], sentence=said(first.note)
    )


def said(note: Note) -> str:
    """Return a finding's sentence as Markdown; texts of users and models are literal in it."""
    values = {
        name: markdown_literal(value) if isinstance(value, str) and not _NUMBER.fullmatch(value) else value
        for name, value in note.values.items()
    }
    return _(note.template).format(**values)


def stage_names() -> dict[Stage, str]:
    """Return what the stages are called."""
    return {"text": _("text"), "ids": _("ids"), "logits": _("logits"), "settings": _("sampler"), "draw": _("draw")}


def where(step: StreamStep) -> str:
    """Return where in the model two runs part first."""
    if step.name == "token_embedding":
        return _("Inside the model they part at the embedding.")
    if step.name == "hidden_state":
        return _("Inside the model they part at the final norm.")
    if step.name.endswith("resid_mid"):
        return _("Inside the model they part at the attention of block {n}.").format(n=step.block)
    return _("Inside the model they part at the MLP of block {n}.").format(n=step.block)
