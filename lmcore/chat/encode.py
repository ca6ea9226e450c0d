"""A conversation to ids: the rendered text through the model's tokenizer."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from lmcore.chat.render import Message, Rendered, Span, control_strings, render
from lmcore.chat.template import ChatTemplate
from lmcore.config import ModelConfig
from lmcore.tokenizer import Encoding, Tokenizer


class ChatModel(Protocol):
    """What is asked of a model here; `LanguageModel` is one."""

    name: str
    tokenizer: Tokenizer
    end_tokens: tuple[int, ...]
    chat_template: ChatTemplate | None

    @property
    def config(self) -> ModelConfig:
        """The model's config."""

    def last_logits(self, ids: Sequence[int], n: int) -> Tensor:
        """Return the logits [n, vocab_size] at the last n positions."""


@dataclass(frozen=True)
class Elsewhere:
    """What another program made of a conversation, an engine's server for instance.

    Attributes:
        name: what it is called.
        text: the text it rendered.
        ids: the ids its model gets; None where it does not tell.
    """

    name: str
    text: str
    ids: tuple[int, ...] | None = None


def encode(
    lm: ChatModel,
    messages: Sequence[Message],
    *,
    template: ChatTemplate | str | None = None,
    user_text_stays_text: bool = False,
    **options: Any,
) -> Encoding:
    """Return a conversation in a model's tokens, as transformers' apply_chat_template does.

    Nothing is added in front: a BOS is there when the template writes it.

    Args:
        lm: the model.
        messages: the conversation, as for `render`.
        template: another template than the model's own.
        user_text_stays_text: whether a control string in a message is text. When False, as it is by default in
            transformers, whoever writes a message can write control tokens.
        options: those of `render`, and the template's variables.

    Raises:
        ValueError: the model has no template; else as `render`.
    """
    return encode_rendered(
        lm.tokenizer, render(template_of(lm, template), messages, **options), user_text_stays_text=user_text_stays_text
    )


def template_of(lm: ChatModel, given: ChatTemplate | str | None = None) -> ChatTemplate:
    """Return the template given, with what the model's special tokens are, or the model's own.

    Raises:
        ValueError: there is neither.
    """
    own = lm.chat_template
    if isinstance(given, ChatTemplate):
        return given
    if given is not None:
        return ChatTemplate(given, own.variables if own else {}, control=tuple(lm.tokenizer.special_tokens))
    if own is None:
        raise ValueError(f"{lm.name} has no chat template: its files hold none. Give one with template=...")
    return own


def encode_rendered(tokenizer: Tokenizer, rendered: Rendered, *, user_text_stays_text: bool = False) -> Encoding:
    """Return a rendered text in tokens; see `encode`."""
    text = rendered.text
    if not user_text_stays_text:
        return tokenizer.encode(text, special_tokens=True, add_first=False)
    ids: list[int] = []
    tokens: list[bytes] = []
    offsets: list[tuple[int, int]] = []
    for start, end, as_text in _pieces(rendered, tokenizer):
        piece = (
            _inside(tokenizer, text[start:end], not as_text)
            if start
            else tokenizer.encode(text[:end], not as_text, add_first=False)
        )
        ids += piece.ids
        tokens += piece.tokens
        offsets += [(start + left, start + right) for left, right in piece.offsets]
    return Encoding(text, ids, tokens, offsets)


def end_of_turn(
    lm: ChatModel,
    template: ChatTemplate | str | None = None,
    messages: Sequence[Message] = ({"role": "user", "content": "Hello"},),
    **options: Any,
) -> int | None:
    """Return the control token with which a template ends the assistant's turn; None where it writes none.

    Args:
        lm: the model.
        template: another template than the model's own.
        messages: what the assistant answers.
        options: those of `render`, and the template's variables.

    Raises:
        ValueError: as `render`.
    """
    options |= {"add_generation_prompt": False, "continue_final_message": False}
    closed = render(template_of(lm, template), [*messages, {"role": "assistant", "content": "OK"}], **options)
    said = [span.end for span in closed.spans if span.message == len(messages) and span.field == "content"]
    after = (span for span in closed.spans if said and span.kind == "control" and span.start >= said[-1])
    end = next(after, None)
    return None if end is None else lm.tokenizer.special_tokens.get(end.text)


def written_by_users(rendered: Rendered, tokenizer: Tokenizer) -> Iterator[tuple[int, int, Span]]:
    """Yield (start, end, span) of each control string of the tokenizer in the text of a message or of the tools."""
    starts = [span.start for span in rendered.spans]
    for start, end in control_strings(rendered.text, tokenizer.special_tokens):
        span = rendered.spans[bisect_right(starts, start) - 1]
        is_foreign = span.kind == "message" or (span.kind == "variable" and not span.field.endswith("_token"))
        if is_foreign and end <= span.end:
            yield start, end, span


def _pieces(rendered: Rendered, tokenizer: Tokenizer) -> Iterator[tuple[int, int, bool]]:
    """Yield (start, end, whether control strings in it are text), in order."""
    at = 0
    for start, end, _span in written_by_users(rendered, tokenizer):
        if at < start:
            yield at, start, False
        yield start, end, True
        at = end
    if at < len(rendered.text):
        yield at, len(rendered.text), False


def _inside(tokenizer: Tokenizer, text: str, special: bool) -> Encoding:
    """Encode a piece from the middle of a text: SentencePiece would put a space before it, but not after a new line."""
    before, found = (tokenizer.encode(piece, special, add_first=False) for piece in ("\n", "\n" + text))
    n = len(before)
    if found.ids[:n] != before.ids:
        return tokenizer.encode(text, special, add_first=False)
    offsets = [(max(start - 1, 0), end - 1) for start, end in found.offsets[n:]]
    return Encoding(text, found.ids[n:], found.tokens[n:], offsets)
