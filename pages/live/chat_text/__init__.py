"""A conversation as a template wrote it: each character coloured by its origin, and the template's lines that ran."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from lmcore.chat import AnswerPart, ChatTemplate, Finding, Rendered, Span, parts
from pages.common.escape import visible
from pages.common.text import _
from pages.figures.theme import position_colour
from pages.live.part import part

_HTML = '<div class="chat"><section class="written"></section><section class="source"></section></div>'


def chat_text(
    rendered: Rendered, messages: Sequence[Mapping[str, object]], findings: Sequence[Finding], *, key: str
) -> None:
    """Show the text beside the template.

    Args:
        rendered: the conversation.
        messages: its messages, for their roles.
        findings: those with a place are underlined.
        key: unique on the page.
    """
    faults = [finding.place for finding in findings if finding.place is not None]
    lines = rendered.source.split("\n")
    ran = set(rendered.lines)
    answers = _answers(rendered, messages)
    part("chat_text", _HTML)(
        key=key,
        data={
            "spans": [
                _span(piece, what, messages, faults)
                for span in rendered.spans
                for piece, what in _told_apart(span, messages, answers)
            ],
            "lines": [{"text": line, "ran": number in ran} for number, line in enumerate(lines, start=1)],
            "wording": {
                "text": _("The text that the model gets"),
                "template": _("The template: the lines that ran are dark"),
                "prompt": _("generation prompt"),
            },
        },
    )


def _answers(rendered: Rendered, messages: Sequence[Mapping[str, object]]) -> dict[int, tuple[AnswerPart, ...]]:
    """Return, by message, what those of the assistant's contents consist of that are not text alone."""
    template = ChatTemplate(rendered.source)
    found = {
        index: parts(str(message.get("content", "")), template)
        for index, message in enumerate(messages)
        if message.get("role") == "assistant"
    }
    return {index: each for index, each in found.items() if any(one.kind != "text" for one in each)}


def _told_apart(
    span: Span, messages: Sequence[Mapping[str, object]], answers: Mapping[int, tuple[AnswerPart, ...]]
) -> Iterator[tuple[Span, str]]:
    """Yield a span, or the pieces of an answer's, each with what it is: "thinking", "tool_call" or "text"."""
    fields = {"reasoning_content": "thinking", "thinking": "thinking", "tool_calls": "tool_call"}
    if span.message is None or span.field != "content" or span.message not in answers:
        yield span, fields.get(span.field, "text") if span.kind == "message" else "text"
        return
    first = str(messages[span.message]["content"]).find(span.text)  # templates trim, and leave out
    for each in answers[span.message]:
        start, end = (max(0, min(edge - max(first, 0), len(span.text))) for edge in (each.start, each.end))
        if start < end:
            piece = replace(span, start=span.start + start, end=span.start + end, text=span.text[start:end])
            yield piece, each.kind


def _span(
    span: Span, what: str, messages: Sequence[Mapping[str, object]], faults: Sequence[tuple[int, int]]
) -> dict[str, str | int | bool | None]:
    labels = {"thinking": _("thinking"), "tool_call": _("call of a tool")}
    label = origin(span, messages)
    return {
        # A new line is a mark and a new line: the text keeps its shape.
        "text": visible(span.text).replace("⏎", "⏎\n").replace("␣", "·"),
        "kind": span.kind if what == "text" else f"{span.kind} {what}",
        "label": f"{label} · {labels[what]}" if what in labels else label,
        "colour": position_colour(span.message) if span.message is not None else None,
        "line": span.line,
        "prompt": span.in_prompt,
        "fault": any(start < span.end and span.start < end for start, end in faults),
    }


def origin(span: Span, messages: Sequence[Mapping[str, object]]) -> str:
    """Return where a span came from, in words."""
    if span.message is not None:
        return _("message {n} ({role}): {field}").format(
            n=span.message + 1, role=visible(str(messages[span.message].get("role"))), field=visible(span.field)
        )
    return {
        "template": _("the template's own words, line {line}").format(line=span.line),
        "control": _("control token {token}").format(token=visible(span.field)),
        "variable": _("the value of {name}").format(name=visible(span.field)),
        "mixed": _("made of several, or of a number"),
    }[span.kind]
