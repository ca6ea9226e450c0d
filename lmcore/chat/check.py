"""What is wrong between messages, template, tokenizer and model, with what it costs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from lmcore.chat.encode import ChatModel, encode_rendered, end_of_turn, template_of, written_by_users
from lmcore.chat.findings import Finding, Harm
from lmcore.chat.process import TemplateRefused
from lmcore.chat.render import Message, Rendered, Span, render
from lmcore.chat.template import ChatTemplate
from lmcore.tokenizer import Encoding, Tokenizer

_LIKE_CONTROL = re.compile(r"<\|[^|<>\s]{1,40}\|>|<｜[^｜<>\s]{1,40}｜>|<(?:start|end)_of_\w+>|</?s>|<[be]os>")
_SHOWN = 30  # characters of a difference


def check(
    lm: ChatModel,
    messages: Sequence[Message],
    *,
    template: ChatTemplate | str | None = None,
    other: ChatTemplate | None = None,
    answer: str | None = None,
    user_text_stays_text: bool = False,
    **options: Any,
) -> tuple[Finding, ...]:
    """Return what is wrong with a conversation as this model gets it.

    Args:
        lm: the model.
        messages: the conversation, as for `render`.
        template: another template than the model's own.
        other: a second template that should write the same, such as that of the model's folder beside a GGUF file's.
        answer: the true answer; with it the harm is measured as the model's loss of it.
        user_text_stays_text: as for `encode`.
        options: those of `render`, and the template's variables.

    Raises:
        ValueError: the model has no template and none is given.
    """
    found = _Checked(lm, messages, template_of(lm, template), answer, user_text_stays_text, options)
    if found.refused is not None:
        return (found.refused,)
    checks = (
        found.messages_written(),
        found.beginning(),
        found.control_tokens(),
        found.end_of_turn(),
        found.generation_prompt(),
        found.last_token(),
        found.compared(other),
    )
    return tuple(finding for part in checks for finding in part)


class _Checked:
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

    def messages_written(self) -> Iterator[Finding]:
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

    def beginning(self) -> Iterator[Finding]:
        """Look for a BOS that is missing, there twice, or put in front by the tokenizer as well."""
        first, ids = list(self._tokenizer.added_first), self._encoding.ids
        if not first:
            bos = self._template.variables.get("bos_token", "")
            known = self._tokenizer.special_tokens.get(bos)
            if known is not None and ids[:2] == [known, known]:
                yield Finding("bos_doubled", self._token_place(1), values={"token": bos}, harm=self._loss(ids[1:]))
            return
        values = {"token": self._written(first)}
        n = len(first)
        if ids[:n] != first:
            yield Finding("bos_missing", (0, 0), values=values, harm=self._loss([*first, *ids]))
        elif ids[n : 2 * n] == first:
            yield Finding("bos_doubled", self._token_place(n), values=values, harm=self._loss(ids[n:]))
        else:
            harm = self._loss(ids, as_is=[*first, *ids])
            yield Finding("bos_added_again", self._token_place(0), values=values, harm=harm)

    def control_tokens(self) -> Iterator[Finding]:
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
            harm = self._loss(encode_rendered(self._tokenizer, self._rendered, user_text_stays_text=True).ids)
            for (index, string), place in first.items():
                yield Finding("text_became_control", place, index, {"string": string}, harm)

    def end_of_turn(self) -> Iterator[Finding]:
        """Look whether generation stops where the template ends the assistant's turn."""
        try:
            token = end_of_turn(self._lm, self._template, self._asked, **self._options)
        except TemplateRefused:
            return
        if token is None or token in self._lm.end_tokens:
            return
        ends = ", ".join(self._written([i]) for i in self._lm.end_tokens[:4])
        yield Finding("stop_differs", values={"token": self._written([token]), "ends": ends}, harm=self._chance(token))

    def generation_prompt(self) -> Iterator[Finding]:
        """Look whether the text begins the assistant's turn where it has to, and only there."""
        is_answer = self._messages[-1].get("role") == "assistant"
        asked = self._options.get("add_generation_prompt", not self._options.get("continue_final_message", False))
        place = len(self._rendered.text), len(self._rendered.text)
        if is_answer and asked and self._rendered.prompt is not None:
            options = {**self._options, "add_generation_prompt": False, "continue_final_message": True}
            yield Finding("prompt_after_answer", self._rendered.prompt, harm=self._loss(self._ids_with(options)))
        elif not is_answer and self._rendered.prompt is None:
            options = {**self._options, "add_generation_prompt": True, "continue_final_message": False}
            prompted = self._rendered if asked else self._try(self._messages, options)
            if asked or (prompted is not None and prompted.prompt is None):
                yield Finding("prompt_ignored", place)
            elif prompted is not None:
                yield Finding("prompt_missing", place, harm=self._loss(self._encoded(prompted).ids))

    def last_token(self) -> Iterator[Finding]:
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
        harm = self._loss(mended, before=text[len(bare) :])
        yield Finding("token_split", (len(bare), len(text)), values=values, harm=harm)

    def compared(self, other: ChatTemplate | None) -> Iterator[Finding]:
        """Look whether another template writes the same."""
        if other is None:
            return
        name = other.filename or "the other template"
        try:
            theirs = render(other, self._messages, **self._options)
        except TemplateRefused as error:
            yield Finding("template_differs", values={"other": name, "at": 0, "theirs": str(error), "ours": "a text"})
            return
        ours = self._rendered.text
        if theirs.text == ours:
            return
        pairs = zip(ours, theirs.text, strict=False)
        at = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(ours), len(theirs.text)))
        values = {"other": name, "at": at, "theirs": repr(theirs.text[at:][:_SHOWN]), "ours": repr(ours[at:][:_SHOWN])}
        place = at, min(at + _SHOWN, len(ours))
        yield Finding("template_differs", place, values=values, harm=self._loss(self._encoded(theirs).ids))

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

    def _loss(self, mended: Sequence[int] | None, as_is: Sequence[int] | None = None, before: str = "") -> Harm | None:
        """Return the loss of the true answer after the ids as they are and after the mended ones, where `before` of
        the text was left to the answer; None where there is nothing before the answer, or more than the model takes."""
        if self._answer is None or mended is None:
            return None
        try:
            now = answer_loss(self._lm, self._encoding.ids if as_is is None else as_is, self._answer)
            return Harm("loss", now, answer_loss(self._lm, mended, before + self._answer))
        except ValueError:
            return None

    def _chance(self, token: int) -> Harm | None:
        """Return how likely generation stops after the true answer, as it is and at this token; None as `_loss`."""
        if self._answer is None:
            return None
        answer = self._tokenizer.encode(self._answer, add_first=False).ids
        try:
            probs = self._lm([*self._encoding.ids, *answer])[-1].softmax(-1)
        except ValueError:
            return None
        return Harm("probability", float(probs[list(self._lm.end_tokens)].sum()), float(probs[token]))


def answer_loss(lm: ChatModel, ids: Sequence[int], answer: str) -> float:
    """Return the mean loss of an answer's tokens after these ids, in nats.

    Args:
        lm: the model.
        ids: what comes before the answer, one at least.
        answer: some text.

    Raises:
        ValueError: no ids or no answer, or more tokens than the model takes.
    """
    targets = lm.tokenizer.encode(answer, add_first=False).ids
    if not targets:
        raise ValueError("the answer is empty; give a text, whose loss is measured.")
    if not ids:
        raise ValueError("there are no ids before the answer; give one at least, for its first token to follow.")
    log_probs = lm([*ids, *targets])[len(ids) - 1 : -1].log_softmax(-1)
    return -sum(float(row[target]) for row, target in zip(log_probs, targets, strict=True)) / len(targets)
