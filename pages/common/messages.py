"""A conversation as the reader wrote it: messages and how they are rendered, to and from JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pages.common.text import _


@dataclass(frozen=True)
class Conversation:
    """Messages, and how they are rendered.

    Attributes:
        messages: each with its role and content, and what else it has.
        prompt: whether the text ends with the beginning of the assistant's turn.
        continued: whether the last message is gone on with instead.
        tools: descriptions of tools, as JSON; as the reader typed it.
        variables: what else the template is told, enable_thinking for instance.
    """

    messages: tuple[Mapping[str, Any], ...]
    prompt: bool = True
    continued: bool = False
    tools: str = ""
    variables: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Conversation:
        """Read what `text` wrote.

        Raises:
            ValueError: it is no conversation.
        """
        try:
            return cls.of(json.loads(text))
        except RecursionError:
            raise ValueError("a conversation is not that deep") from None

    @classmethod
    def of(cls, given: Any) -> Conversation:
        """Return a conversation from plain values, as the browser sends them or JSON has them.

        Raises:
            ValueError: they are none.
        """
        if not isinstance(given, dict) or not isinstance(given.get("messages"), list):
            raise ValueError("a conversation is a table with messages")
        messages = given["messages"]
        if not messages:
            raise ValueError("a conversation has at least one message")
        for message in messages:
            if not isinstance(message, dict) or not all(
                isinstance(message.get(key), str) for key in ("role", "content")
            ):
                raise ValueError("a message has a role and a content, both texts")
        variables = given.get("variables", {})
        if not isinstance(variables, dict):
            raise ValueError("variables are a table")
        continued = bool(given.get("continued", False))
        return cls(
            messages=tuple(messages),
            prompt=bool(given.get("prompt", True)) and not continued,
            continued=continued,
            tools=str(given.get("tools", "")),
            variables={name: value for name, value in variables.items() if isinstance(value, (str, bool, int, float))},
        )

    @property
    def text(self) -> str:
        """The conversation as JSON, without what is as usual."""
        values: dict[str, Any] = {"messages": list(self.messages)}
        values |= {} if self.prompt or self.continued else {"prompt": False}
        values |= {"continued": True} if self.continued else {}
        values |= {"tools": self.tools} if self.tools else {}
        values |= {"variables": dict(self.variables)} if self.variables else {}
        return json.dumps(values, ensure_ascii=False, separators=(",", ":"))

    def options(self) -> dict[str, Any]:
        """Return the arguments of `lmcore.chat.render` beside template and messages.

        Raises:
            ValueError: the tools are no JSON list.
        """
        found: dict[str, Any] = {"add_generation_prompt": self.prompt}
        if self.continued:
            found["continue_final_message"] = True
        if self.tools.strip():
            try:
                found["tools"] = json.loads(self.tools)
            except (json.JSONDecodeError, RecursionError) as error:
                raise ValueError(_("The tools are not JSON: {error}.").format(error=error)) from None
            if not isinstance(found["tools"], list):
                raise ValueError(_("The tools must be a JSON list of descriptions."))
        reserved = {*found, "template", "messages", "tools", "now", "continue_final_message"}
        return found | {name: value for name, value in self.variables.items() if name not in reserved}
