"""What a model wrote in its turn: thinking, calls of tools, and the text for the reader.

Models mark these with strings that their template writes too. Only marks that stand in the template's source count: for
a model that was never shown `<think>`, it is a word like any other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

from lmcore.chat.template import ChatTemplate

Kind = Literal["text", "thinking", "tool_call"]

_MARKS: tuple[tuple[Kind, str, str], ...] = (
    ("thinking", "<think>", "</think>"),
    ("thinking", "[THINK]", "[/THINK]"),
    ("tool_call", "<tool_call>", "</tool_call>"),
    ("tool_call", "<tool_calls>", "</tool_calls>"),
    ("tool_call", "[TOOL_CALLS]", ""),  # to the end of the turn
    ("tool_call", "<|python_tag|>", ""),
    ("tool_call", "<|tool_call_begin|>", "<|tool_call_end|>"),
    ("tool_call", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"),
)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)', re.DOTALL)
_LONGEST_CALL, _DEEPEST = 20_000, 50  # what is longer, or nested deeper, is shown as it was written
_CHANNEL = "<|channel|>"  # gpt-oss writes a turn as several messages, each in a channel
_CHANNELS = re.compile(
    r"(?:<\|start\|>assistant)?<\|channel\|>(?P<channel>\w+)(?: to=(?:functions\.)?(?P<to>[^\s<]+))?"
    r"(?: ?(?:<\|constrain\|>)?json)?<\|message\|>(?P<text>.*?)(?:<\|(?:end|call|return)\|>|(?=<\|start\|>)|\Z)",
    re.DOTALL,
)
_FUNCTION = re.compile(r"\s*<function=([^>]+)>(.*)</function>\s*", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>]+)>\n?(.*?)\n?</parameter>", re.DOTALL)
_KEY_AND_VALUE = re.compile(r"<arg_key>([^<]*)</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL)


@dataclass(frozen=True)
class AnswerPart:
    """A part of an answer.

    Attributes:
        kind: what it is.
        start: its first character in the answer, with its mark.
        end: the character after its last, with its mark.
        text: what it says, without marks.
        calls: of a "tool_call": (name, arguments) of each; empty where they cannot be read.
    """

    kind: Kind
    start: int
    end: int
    text: str
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()


def parts(answer: str, template: ChatTemplate | None, begun: str = "") -> tuple[AnswerPart, ...]:
    """Return what an answer consists of; the parts, one after the other, are the whole answer.

    Args:
        answer: what the model wrote, without the token that ended its turn.
        template: the template of the conversation; without one all is text.
        begun: the generation prompt, which may have begun the thinking.

    >>> [(p.kind, p.text) for p in parts("<think>\\nEasy.\\n</think>\\n\\nParis.", ChatTemplate("<think>"))]
    [('thinking', '\\nEasy.\\n'), ('text', '\\n\\nParis.')]
    """
    source = "" if template is None else "\n".join([template.source, *template.named.values()])
    if _CHANNEL in source:
        return tuple(_channels(answer))
    marks = [mark for mark in _MARKS if mark[1] in source or (mark[2] and mark[2] in source)]
    return tuple(_marked(answer, marks, begun))


def message(answer: str, found: Sequence[AnswerPart]) -> dict[str, Any]:
    """Return an answer as an assistant's message, in the fields that templates know.

    Where a call cannot be read, all of the answer is the content.

    >>> message("a", [AnswerPart("text", 0, 1, "a")])
    {'role': 'assistant', 'content': 'a'}
    """
    kinds = {part.kind for part in found}
    if kinds <= {"text"} or any(part.kind == "tool_call" and not part.calls for part in found):
        return {"role": "assistant", "content": answer}
    written = {kind: [part.text for part in found if part.kind == kind] for kind in kinds}
    made: dict[str, Any] = {"role": "assistant", "content": "".join(written.get("text", [])).strip("\n")}
    if "thinking" in kinds:
        made["reasoning_content"] = "\n".join(text.strip("\n") for text in written["thinking"])
    if "tool_call" in kinds:
        made["tool_calls"] = [
            {"type": "function", "function": {"name": name, "arguments": dict(arguments)}}
            for part in found
            for name, arguments in part.calls
        ]
    return made


def _marked(answer: str, marks: Sequence[tuple[Kind, str, str]], begun: str) -> Iterator[AnswerPart]:
    at = 0
    for kind, opening, closing in marks:  # the generation prompt opened it
        if closing and begun.rstrip().endswith(opening):
            end = answer.find(closing)
            inside, at = (answer, len(answer)) if end < 0 else (answer[:end], end + len(closing))
            if at:
                yield _part(kind, 0, at, inside)
            break
    by_opening = {opening: (kind, closing) for kind, opening, closing in marks}
    openings = re.compile("|".join(map(re.escape, by_opening)) or "(?!)")
    while found := openings.search(answer, at):
        if found.start() > at:
            yield AnswerPart("text", at, found.start(), answer[at : found.start()])
        kind, closing = by_opening[found[0]]
        last = answer.find(closing, found.end()) if closing else -1
        inside, at = (
            (answer[found.end() :], len(answer)) if last < 0 else (answer[found.end() : last], last + len(closing))
        )
        yield _part(kind, found.start(), at, inside)
    if at < len(answer):
        yield AnswerPart("text", at, len(answer), answer[at:])


def _channels(answer: str) -> Iterator[AnswerPart]:
    at = 0
    for found in _CHANNELS.finditer(answer):
        if found.start() > at:
            yield AnswerPart("text", at, found.start(), answer[at : found.start()])
        at, text = found.end(), found["text"]
        if found["to"]:
            arguments = _json(text) if len(text) <= _LONGEST_CALL else None
            calls = ((found["to"], arguments),) if isinstance(arguments, dict) else ()
            yield AnswerPart("tool_call", found.start(), at, text, calls)
        else:
            yield AnswerPart("thinking" if found["channel"] == "analysis" else "text", found.start(), at, text)
    if at < len(answer):
        yield AnswerPart("text", at, len(answer), answer[at:])


def _part(kind: Kind, start: int, end: int, text: str) -> AnswerPart:
    return AnswerPart(kind, start, end, text, tuple(_calls(text)) if kind == "tool_call" else ())


def _calls(text: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the calls written in a text, [] where it is in no form known here."""
    if len(text) > _LONGEST_CALL:
        return []
    if function := _FUNCTION.fullmatch(text):
        return [(function[1].strip(), dict(_PARAMETER.findall(function[2])))]
    if pairs := _KEY_AND_VALUE.findall(text):
        return [(text.partition("<arg_key>")[0].strip(), dict(pairs))]
    given = _json(text)
    calls: list[tuple[str, Mapping[str, Any]]] = []
    for each in given if isinstance(given, list) else [given]:
        name = each.get("name") if isinstance(each, dict) else None
        arguments = each.get("arguments", each.get("parameters", {})) if isinstance(each, dict) else None
        arguments = _json(arguments) if isinstance(arguments, str) else arguments
        if not isinstance(name, str) or not isinstance(arguments, dict):
            return []
        calls.append((name, arguments))
    return calls


def _json(text: str) -> Any:
    """Return what a text says in JSON; None where it is none, or nested so deep that it could not be written again."""
    bare = _STRING.sub("", text)  # brackets in a string nest nothing
    if max(accumulate((c in "[{") - (c in "]}") for c in bare), default=0) > _DEEPEST:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
