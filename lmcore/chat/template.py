"""A model's chat template, as its files have it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ChatTemplate:
    """A program in Jinja that writes a conversation as one text.

    Attributes:
        source: the template.
        variables: what it may use besides the conversation: the texts of the special tokens, `bos_token` and so on.
        named: further templates of the same model, such as "tool_use".
        control: the strings that the model's tokenizer reads as control tokens.
        filename: the file it comes from; "" where it was typed.
    """

    source: str
    variables: Mapping[str, str] = field(default_factory=dict)
    named: Mapping[str, str] = field(default_factory=dict)
    control: tuple[str, ...] = ()
    filename: str = ""

    def used(self, has_tools: bool = False) -> str:
        """Return the source for a conversation: the one named tool_use where there are tools and such a template.

        >>> ChatTemplate("a", named={"tool_use": "b"}).used(has_tools=True)
        'b'
        """
        return self.named.get("tool_use", self.source) if has_tools else self.source
