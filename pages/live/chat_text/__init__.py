"""A conversation as a template wrote it: each character coloured by its origin, and the template's lines that ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lmcore.chat import Finding, Rendered, Span
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
    part("chat_text", _HTML)(
        key=key,
        data={
            "spans": [_span(span, messages, faults) for span in rendered.spans],
            "lines": [{"text": line, "ran": number in ran} for number, line in enumerate(lines, start=1)],
            "wording": {
                "text": _("The text that the model gets"),
                "template": _("The template: the lines that ran are dark"),
                "prompt": _("generation prompt"),
            },
        },
    )


def _span(
    span: Span, messages: Sequence[Mapping[str, object]], faults: Sequence[tuple[int, int]]
) -> dict[str, str | int | bool | None]:
    return {
        # A new line is a mark and a new line: the text keeps its shape.
        "text": visible(span.text).replace("⏎", "⏎\n").replace("␣", "·"),
        "kind": span.kind,
        "label": origin(span, messages),
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
