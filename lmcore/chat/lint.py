"""The checks: what can be wrong between messages, template, tokenizer and model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from lmcore.chat.encode import ChatModel, Elsewhere, encode_rendered, end_of_turn, written_by_users
from lmcore.chat.findings import Finding
from lmcore.chat.harm import Harms, Measure
from lmcore.chat.process import TemplateRefused
from lmcore.chat.render import Message, Rendered, Span, render
from lmcore.chat.template import ChatTemplate
from lmcore.tokenizer import Encoding, Tokenizer

_LIKE_CONTROL = re.compile(r"<\|[^|<>\s]{1,40}\|>|<｜[^｜<>\s]{1,40}｜>|<(?:start|end)_of_\w+>|</?s>|<[be]os>")
_SHOWN = 30  # characters of a difference


# A finding, or one with what measures its harm; findings that share a harm share what measures it.
_Found = Finding | tuple[Finding, Measure | None]


class Lint:
    """A conversation, rendered and encoded, and the checks on it."""

    def __init__(
        self,
        lm: ChatModel,
        messages: Sequence[Message],
        template: ChatTemplate,
        answer: str | None,
        text_stays_text: bool,
        options: dict[str, Any],
    ) -> None:
        self._lm, self._messages, self._template = lm, messages, template
        self._answer, self._text_stays_text, self._options = answer, text_stays_text, options
        self._tokenizer: Tokenizer = lm.tokenizer
        self.refused: Finding | None = None
        try:
            self._rendered = render(template, messages, **options)
        except TemplateRefused as error:
            number = self._first_refused() if error.kind == "refused" else None
            self.refused = Finding("refused", message=number, values={"sentence": str(error)})
            return
        self._encoding = self._encoded(self._rendered)
        self._harms = Harms(lm, self._encoding.ids, answer)

    def messages_written(self) -> Iterator[_Found]:
        """Look for contents that are not in the text, or not where they belong."""
        written = {index: self._content(index) for index in range(len(self._messages))}
        for index, message in enumerate(self._messages):
            content = message.get("content")
            if not isinstance(content, str) or not content.strip():
                continue
            values = {"number": index + 1, "role": message.get("role")}
            n = sum(len(span.text) for span in written[index])
            if n == 0:
                yield Finding("message_dropped", message=index, values=values)
            elif n < len(content):
                place = written[index][0].start, written[index][-1].end
                yield Finding("content_cut", place, index, values | {"lost": len(content) - n, "n": len(content)})
            if n and message.get("role") == "system" and self._is_moved(index, written):
                yield Finding("system_moved", (written[index][0].start, written[index][-1].end), index)

    def beginning(self) -> Iterator[_Found]:
        """Look for a BOS that is missing, there twice, or put in front by the tokenizer as well."""
        first, ids = list(self._tokenizer.added_first), self._encoding.ids
        if not first:
            bos = self._template.variables.get("bos_token", "")
            known = self._tokenizer.special_tokens.get(bos)
            if known is not None and ids[:2] == [known, known]:
                yield Finding("bos_doubled", self._token_place(1), values={"token": bos}), self._harms.loss(ids[1:])
            return
        values = {"token": self._written(first)}
        n = len(first)
        if ids[:n] != first:
            yield Finding("bos_missing", (0, 0), values=values), self._harms.loss([*first, *ids])
        elif ids[n : 2 * n] == first:
            yield Finding("bos_doubled", self._token_place(n), values=values), self._harms.loss(ids[n:])
        else:
            harm = self._harms.loss(ids, as_is=[*first, *ids])
            yield Finding("bos_added_again", self._token_place(0), values=values), harm

    def control_tokens(self) -> Iterator[_Found]:
        """Look for control strings that are text, and text that became a control token."""
        special = self._tokenizer.special_tokens
        said: set[str] = set()
        for span in self._rendered.spans:
            for found in _LIKE_CONTROL.finditer(span.text if span.kind == "template" else ""):
                pieces = self._tokenizer.encode(found[0], special_tokens=True)
                n = len(pieces) - pieces.n_added
                if found[0] not in special and found[0] not in said and n > 1:
                    said.add(found[0])
                    place = span.start + found.start(), span.start + found.end()
                    yield Finding("control_as_text", place, values={"string": found[0], "n": n})
        if self._text_stays_text:
            return
        first: dict[tuple[int | None, str], tuple[int, int]] = {}  # where each string stands first in each message
        for start, end, span in written_by_users(self._rendered, self._tokenizer):
            first.setdefault((span.message, self._rendered.text[start:end]), (start, end))
        if first:
            harm = self._harms.loss(encode_rendered(self._tokenizer, self._rendered, user_text_stays_text=True).ids)
            for (index, string), place in first.items():
                yield Finding("text_became_control", place, index, {"string": string}), harm

    def end_of_turn(self) -> Iterator[_Found]:
        """Look whether generation stops where the template ends the assistant's turn."""
        try:
            token = end_of_turn(self._lm, self._template, self._asked, **self._options)
        except TemplateRefused:
            return
        if token is None or token in self._lm.end_tokens:
            return
        ends = ", ".join(self._written([i]) for i in self._lm.end_tokens[:4])
        yield (
            Finding("stop_differs", values={"token": self._written([token]), "ends": ends}),
            self._harms.chance(token, self._lm.end_tokens),
        )

    def generation_prompt(self) -> Iterator[_Found]:
        """Look whether the text begins the assistant's turn where it has to, and only there."""
        is_answer = self._messages[-1].get("role") == "assistant"
        asked = self._options.get("add_generation_prompt", not self._options.get("continue_final_message", False))
        place = len(self._rendered.text), len(self._rendered.text)
        if is_answer and asked and self._rendered.prompt is not None:
            options = {**self._options, "add_generation_prompt": False, "continue_final_message": True}
            yield Finding("prompt_after_answer", self._rendered.prompt), self._harms.loss(self._ids_with(options))
        elif not is_answer and self._rendered.prompt is None:
            options = {**self._options, "add_generation_prompt": True, "continue_final_message": False}
            prompted = self._rendered if asked else self._try(self._messages, options)
            if asked or (prompted is not None and prompted.prompt is None):
                yield Finding("prompt_ignored", place)
            elif prompted is not None:
                yield Finding("prompt_missing", place), self._harms.loss(self._encoded(prompted).ids)

    def last_token(self) -> Iterator[_Found]:
        """Look whether the last token would be another one, had the answer been there when the text was split."""
        text = self._rendered.text
        bare = text.rstrip(" \t")
        if bare == text:
            return
        answer = (self._answer or "The").lstrip()
        together = self._encoded(replace(self._rendered, text=text + answer))
        ids = self._encoding.ids
        if together.ids[: len(ids)] == ids:
            return
        at = next(i for i, (start, end) in enumerate(together.offsets) if end > len(text))
        values = {"piece": repr(text[len(bare) :]), "whole": repr(together.tokens[at].decode("utf-8", "replace"))}
        mended = self._encoded(replace(self._rendered, text=bare)).ids
        harm = self._harms.loss(mended, before=text[len(bare) :])
        yield Finding("token_split", (len(bare), len(text)), values=values), harm

    def compared(self, other: ChatTemplate | Elsewhere | None) -> Iterator[_Found]:
        """Look whether another template, or another program, writes the same."""
        if other is None:
            return
        if isinstance(other, Elsewhere):
            name, theirs, their_ids = other.name, other.text, other.ids
        else:
            name = other.filename or "the other template"
            try:
                written = render(other, self._messages, **self._options)
            except TemplateRefused as error:
                kind = "other_refused" if error.kind == "refused" else "other_unknown"
                yield Finding(kind, values={"other": name, "sentence": str(error)})
                return
            theirs, their_ids = written.text, tuple(self._encoded(written).ids)
        ours, ids = self._rendered.text, self._encoding.ids
        size = self._lm.config.vocab_size  # another model's ids cannot be read here
        harm = self._harms.loss(their_ids) if their_ids and all(0 <= i < size for i in their_ids) else None
        if theirs != ours:
            at = _first_difference(ours, theirs)
            shown = {"theirs": repr(theirs[at:][:_SHOWN]), "ours": repr(ours[at:][:_SHOWN])}
            place = at, min(at + _SHOWN, len(ours))
            yield Finding("template_differs", place, values={"other": name, "at": at, **shown}), harm
        elif their_ids is not None and list(their_ids) != ids:
            at = _first_difference(ids, their_ids)
            listed = {"theirs": _listed(their_ids[at:]), "ours": _listed(ids[at:])}
            place = self._token_place(at) if at < len(ids) else (len(ours), len(ours))
            yield Finding("ids_differ", place, values={"other": name, "at": at, **listed}), harm

    @property
    def _asked(self) -> Sequence[Message]:
        """The messages before an answer."""
        return self._messages[:-1] if self._messages[-1].get("role") == "assistant" else self._messages

    def _try(self, messages: Sequence[Message], options: dict[str, Any]) -> Rendered | None:
        try:
            return render(self._template, messages, **options)
        except TemplateRefused:
            return None

    def _ids_with(self, options: dict[str, Any]) -> list[int] | None:
        found = self._try(self._messages, options)
        return None if found is None else self._encoded(found).ids

    def _first_refused(self) -> int | None:
        """Return the message at which the template first refuses; None where it takes too long over some before."""
        options = {**self._options, "continue_final_message": False, "add_generation_prompt": False}
        for n in range(1, len(self._messages)):
            try:
                render(self._template, self._messages[:n], **options)
            except TemplateRefused as error:
                return n - 1 if error.kind == "refused" else None
        return len(self._messages) - 1

    def _content(self, index: int) -> list[Span]:
        return [span for span in self._rendered.spans if span.message == index and span.field == "content"]

    def _is_moved(self, index: int, written: dict[int, list[Span]]) -> bool:
        """Whether another message is written before the system message, or no control token stands after it."""
        start, end = written[index][0].start, written[index][-1].end
        others = [spans for other, spans in written.items() if other != index and spans]
        following = min((spans[0].start for spans in others if spans[0].start >= end), default=None)
        if any(spans[0].start < start for other, spans in written.items() if other > index and spans):
            return True
        control = [span for span in self._rendered.spans if span.kind == "control"]
        return bool(control) and following is not None and not any(end <= span.start < following for span in control)

    def _encoded(self, rendered: Rendered) -> Encoding:
        return encode_rendered(self._tokenizer, rendered, user_text_stays_text=self._text_stays_text)

    def _written(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(ids)

    def _token_place(self, index: int) -> tuple[int, int]:
        return self._encoding.offsets[index]


def _first_difference(one: Sequence[Any], other: Sequence[Any]) -> int:
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _listed(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids[:4])) or "-"
