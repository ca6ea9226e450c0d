"""What is wrong between messages, template, tokenizer and model, with what it costs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lmcore.chat.encode import ChatModel, Elsewhere, template_of
from lmcore.chat.findings import Finding, Harm, Unmeasured
from lmcore.chat.harm import MOST_MEASURED, TooLong
from lmcore.chat.lint import Lint
from lmcore.chat.render import Message
from lmcore.chat.template import ChatTemplate

__all__ = ["MOST_MEASURED", "SECONDS", "Checked", "check", "checking"]

SECONDS = 60.0
"""How long measuring goes on; the measurement that is under way is finished."""


@dataclass(frozen=True)
class Checked:
    """How far a check has come.

    Attributes:
        done: harms measured.
        total: harms to measure.
        findings: all that was found, with the harms measured so far.
    """

    done: int
    total: int
    findings: tuple[Finding, ...]


def check(
    lm: ChatModel,
    messages: Sequence[Message],
    *,
    template: ChatTemplate | str | None = None,
    other: ChatTemplate | Elsewhere | None = None,
    answer: str | None = None,
    user_text_stays_text: bool = False,
    **options: Any,
) -> tuple[Finding, ...]:
    """Return what is wrong with a conversation as this model gets it.

    Args:
        lm: the model.
        messages: the conversation, as for `render`.
        template: another template than the model's own.
        other: what should write the same: a second template, such as that of the model's folder beside a GGUF file's,
            or what an engine made of the conversation.
        answer: the true answer; with it the harm is measured as the model's loss of it, for at most `MOST_MEASURED`
            tokens and about `SECONDS`.
        user_text_stays_text: as for `encode`.
        options: those of `render`, and the template's variables.

    Raises:
        ValueError: the model has no template and none is given.
    """
    *_earlier, last = checking(
        lm,
        messages,
        template=template,
        other=other,
        answer=answer,
        user_text_stays_text=user_text_stays_text,
        **options,
    )
    return last.findings


def checking(
    lm: ChatModel,
    messages: Sequence[Message],
    *,
    template: ChatTemplate | str | None = None,
    other: ChatTemplate | Elsewhere | None = None,
    answer: str | None = None,
    user_text_stays_text: bool = False,
    **options: Any,
) -> Iterator[Checked]:
    """Yield what `check` returns, step by step: first all findings, then again after each harm that was measured.

    Args and errors are those of `check`.
    """
    found = Lint(lm, messages, template_of(lm, template), answer, user_text_stays_text, options)
    if found.refused is not None:
        yield Checked(0, 0, (found.refused,))
        return
    checks = (
        found.messages_written(),
        found.beginning(),
        found.control_tokens(),
        found.end_of_turn(),
        found.generation_prompt(),
        found.last_token(),
        found.compared(other),
    )
    pairs = [each if isinstance(each, tuple) else (each, None) for part in checks for each in part]
    measures = list(dict.fromkeys(measure for _finding, measure in pairs if measure is not None))
    findings = [finding for finding, _measure in pairs]
    yield Checked(0, len(measures), tuple(findings))
    started = time.monotonic()
    for done, measure in enumerate(measures, start=1):
        places = [i for i, pair in enumerate(pairs) if pair[1] is measure]
        harm: Harm | None = None
        unmeasured: Unmeasured = ""
        if time.monotonic() - started > SECONDS:
            unmeasured = "late"
        else:
            try:
                harm = measure()
            except TooLong:
                unmeasured = "long"
        for place in places:
            findings[place] = replace(findings[place], harm=harm, unmeasured=unmeasured)
        yield Checked(done, len(measures), tuple(findings))
