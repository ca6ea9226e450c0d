"""Messages to text: a chat template is run, and each character of its text is told where it came from."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal

from lmcore.chat import process
from lmcore.chat.marks import FIRST_LINE
from lmcore.chat.template import ChatTemplate

MOST_CHARACTERS = 1_000_000
"""The longest text that a template may write."""
MOST_SOURCE = 1_000_000
"""The longest template."""
_REASONING = ("reasoning_content", "thinking", "reasoning")

Message = Mapping[str, Any]
Kind = Literal["template", "control", "message", "variable", "mixed"]


@dataclass(frozen=True)
class Span:
    """Neighbouring characters of a rendered text that came from one place.

    Attributes:
        start: its first character.
        end: the character after its last.
        text: what it says.
        kind: "template" for the template's own words, "control" for a control token that it writes, "message" for a
            field of a message, "variable" for another value it was given (tools are one), "mixed" where the origin
            cannot be told: a number, or a text that the template made of several in a way not followed here.
        message: the message's index.
        field: the message's field, the variable's name, or the control token.
        line: the line of the template that says it.
        in_prompt: whether it is part of the generation prompt.
    """

    start: int
    end: int
    text: str
    kind: Kind
    message: int | None = None
    field: str = ""
    line: int | None = None
    in_prompt: bool = False


@dataclass(frozen=True)
class Rendered:
    """A conversation as one text.

    Attributes:
        text: the text.
        spans: where it came from; their texts, joined, are the text.
        source: the template that was used.
        lines: the lines of it that ran, from 1.
        prompt: (start, end) of the generation prompt, the text that is there for `add_generation_prompt` alone; None
            where there is none, or where it is not the text's end.
        assistant: (start, end) of what {% generation %} blocks wrote.
        variables: the names of what the template asks for, sorted.
    """

    text: str
    spans: tuple[Span, ...]
    source: str
    lines: tuple[int, ...]
    prompt: tuple[int, int] | None
    assistant: tuple[tuple[int, int], ...]
    variables: tuple[str, ...]


def render(
    template: ChatTemplate | str,
    messages: Sequence[Message],
    *,
    add_generation_prompt: bool = True,
    continue_final_message: bool = False,
    tools: Sequence[Mapping[str, Any]] | None = None,
    now: datetime | None = None,
    **variables: Any,
) -> Rendered:
    """Write a conversation as the text that a model gets, as transformers' apply_chat_template does.

    The template runs in Jinja's sandbox, in a process of its own that has no files and can be ended.

    Args:
        template: the template, or a model's (`lm.chat_template`), which brings the texts of its special tokens.
        messages: each a table such as {"role": "user", "content": "Hello"}.
        add_generation_prompt: whether the text ends with the beginning of the assistant's turn.
        continue_final_message: whether the text ends inside the last message, for the model to go on with it.
        tools: descriptions of tools, as JSON schemas.
        now: the time that the template's `strftime_now` tells; the machine's when None.
        variables: anything else the template asks for: enable_thinking, date_string, ...

    Raises:
        TemplateRefused: the template raised an error (a role it does not know), or took too much time or memory.
        ValueError: no messages, or values that are no JSON.

    >>> found = render("{% for m in messages %}[{{ m.role }}] {{ m.content | trim }}\\n{% endfor %}",
    ...                [{"role": "user", "content": " Hello "}])
    >>> [(span.text, span.kind, span.field) for span in found.spans]  # doctest: +NORMALIZE_WHITESPACE
    [('[', 'template', ''), ('user', 'message', 'role'), ('] ', 'template', ''), ('Hello', 'message', 'content'),
     ('\\n', 'template', '')]
    """
    if isinstance(template, str):
        template = ChatTemplate(template)
    source = template.used(tools is not None)
    if len(source) > MOST_SOURCE:
        raise ValueError(f"the template has {len(source):,} characters; at most {MOST_SOURCE:,} are run.")
    if not messages:
        raise ValueError("the conversation is empty; give one message at least.")
    if continue_final_message and add_generation_prompt:
        raise ValueError(
            "continue_final_message goes on with the last message, add_generation_prompt begins another: set one."
        )
    values: dict[str, Any] = {"tools": tools, "documents": None, **template.variables, **variables}
    origins = _Origins()
    request = {
        "source": source,
        "messages": [_fields(message, index, origins) for index, message in enumerate(messages)],
        "variables": {name: (value, origins.mark(None, name)) for name, value in values.items()},
        "prompt": add_generation_prompt,
        "continued": continue_final_message,
        "now": now and now.isoformat(),
        "longest": MOST_CHARACTERS,
    }
    try:
        found = process.ask(request)
    except TypeError as error:  # from writing it as JSON
        raise ValueError(f"messages, tools and variables must be texts, numbers, lists and tables: {error}.") from None
    text, start = found["text"], found["before_prompt"]
    prompt = (start, len(text)) if start is not None and start < len(text) else None
    control = {*template.control, *(v for k, v in values.items() if k.endswith("_token") and isinstance(v, str))}
    spans = _with_control(list(_spans(text, found["marks"], origins)), text, control - {""})
    spans = _cut(spans, [start]) if prompt else spans
    return Rendered(
        text=text,
        spans=tuple(replace(span, in_prompt=True) if prompt and span.start >= start else span for span in spans),
        source=source,
        lines=tuple(found["lines"]),
        prompt=prompt,
        assistant=tuple(map(tuple, found["generated"])),
        variables=tuple(found["variables"]),
    )


class _Origins:
    """What a value's marks mean."""

    def __init__(self) -> None:
        self._known: list[tuple[int | None, str]] = []

    def mark(self, message: int | None, field: str) -> str:
        self._known.append((message, field))
        return chr(len(self._known))

    def span(self, start: int, end: int, text: str, mark: str) -> Span:
        number = ord(mark)
        if number == 0:
            return Span(start, end, text, "mixed")
        if number >= FIRST_LINE:
            return Span(start, end, text, "template", line=number - FIRST_LINE + 1)
        message, field = self._known[number - 1]
        return Span(start, end, text, "variable" if message is None else "message", message, field)


def _fields(message: Message, index: int, origins: _Origins) -> dict[str, tuple[Any, str]]:
    """Return a message's fields, each with a mark: none that is null, and the reasoning under each of its names."""
    if not isinstance(message, Mapping):
        raise ValueError(f"message {index} must be a table with a role and a content, got {message!r:.60}.")
    fields = {name: (value, origins.mark(index, name)) for name, value in message.items() if value is not None}
    reasoning = next((fields[name] for name in _REASONING if name in fields), None)
    if reasoning is not None:
        fields = {"thinking": reasoning, **fields, "reasoning_content": reasoning}
    return fields


def _spans(text: str, marks: str, origins: _Origins) -> Iterator[Span]:
    start = 0
    for run in re.finditer(r"(.)\1*", marks, re.DOTALL):
        yield origins.span(start, run.end(), text[start : run.end()], run[1])
        start = run.end()


def control_strings(text: str, control: Iterable[str]) -> list[tuple[int, int]]:
    """Return where control strings stand in a text: the longest at each place, from the left.

    >>> control_strings("<s>a</s>", ("<s>", "</s>"))
    [(0, 3), (4, 8)]
    """
    return [found.span() for found in _pattern(frozenset(control)).finditer(text)]


@lru_cache(maxsize=16)
def _pattern(control: frozenset[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(control, key=len, reverse=True))) or "(?!)")


def _with_control(spans: list[Span], text: str, control: Iterable[str]) -> list[Span]:
    """Return the spans with one for each control string whose characters are all the template's or a variable's."""
    starts = [span.start for span in spans]
    written: dict[int, Span] = {}  # by their start
    for start, end in control_strings(text, control):
        inside = spans[bisect_right(starts, start) - 1 : bisect_left(starts, end)]
        if all(span.kind in ("template", "variable") for span in inside):
            string = text[start:end]
            written[start] = Span(start, end, string, "control", field=string, line=inside[0].line)
    found: list[Span] = []
    for piece in _cut(spans, [at for span in written.values() for at in (span.start, span.end)]):
        if piece.start in written:
            found.append(written[piece.start])
        elif not found or piece.start >= found[-1].end:  # else it is part of the control string
            found.append(piece)
    return found


def _cut(spans: Iterable[Span], places: Sequence[int]) -> list[Span]:
    """Return the spans, none of which reaches over one of these places, characters in ascending order."""
    cut: list[Span] = []
    for span in spans:
        inside = places[bisect_right(places, span.start) : bisect_left(places, span.end)]
        for start, end in pairwise(dict.fromkeys((span.start, *inside, span.end))):
            cut.append(replace(span, start=start, end=end, text=span.text[start - span.start : end - span.start]))
    return cut
