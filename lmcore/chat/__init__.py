"""Chat: from messages to the ids that a model really sees.

from lmcore import chat

found = chat.render(lm.chat_template, [{"role": "user", "content": "Hello"}])
found.text, found.spans                        # each character's origin
chat.encode(lm, messages).ids                  # the ids, as transformers' apply_chat_template gives them
chat.check(lm, messages, answer="Hi!")         # what is wrong, and what it costs this model
"""

from lmcore.chat.aligned import AlignedRow, aligned, tokens_in
from lmcore.chat.answer import AnswerPart, message, parts
from lmcore.chat.check import Checked, check, checking
from lmcore.chat.encode import ChatModel, Elsewhere, encode, encode_rendered, end_of_turn, template_of
from lmcore.chat.findings import Finding, Harm
from lmcore.chat.harm import answer_loss
from lmcore.chat.process import TemplateRefused
from lmcore.chat.render import Message, Rendered, Span, render
from lmcore.chat.template import ChatTemplate

__all__ = [
    "ChatModel",
    "ChatTemplate",
    "Checked",
    "Elsewhere",
    "Finding",
    "Harm",
    "Message",
    "AnswerPart",
    "Rendered",
    "AlignedRow",
    "Span",
    "TemplateRefused",
    "aligned",
    "answer_loss",
    "check",
    "checking",
    "encode",
    "encode_rendered",
    "end_of_turn",
    "message",
    "parts",
    "render",
    "template_of",
    "tokens_in",
]

_FORMER = {"Part": AnswerPart, "Row": AlignedRow}


def __getattr__(name: str) -> type:
    """Find a class by the name that older Python has for it."""
    if name in _FORMER:
        return _FORMER[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
