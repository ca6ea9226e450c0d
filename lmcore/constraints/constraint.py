"""A constraint as it was asked for: a kind and a text."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal, get_args

Kind = Literal["regex", "json_schema", "choices"]
Reason = Literal["grammar", "left", "stuck"]
KINDS: tuple[Kind, ...] = get_args(Kind)
MAX_TEXT = 2000  # characters


class ConstraintRefused(ValueError):
    """A constraint that no token can be drawn under, in a sentence.

    Attributes:
        reason: "grammar": it cannot be read; "left": the text so far does not fit; "stuck": nothing can follow.
        detail: what is wrong with the grammar; "" otherwise.
    """

    def __init__(self, reason: Reason, sentence: str, detail: str = "") -> None:
        super().__init__(sentence)
        self.reason, self.detail = reason, detail


@dataclass(frozen=True)
class Constraint:
    """What the text after the prompt has to be, as a whole.

    Attributes:
        kind: "regex", "json_schema" or "choices".
        text: the regular expression, the schema as JSON, or the choices, one per line. Spaces at the ends of a choice
            belong to it; empty lines do not count.
        retries: whether a token is drawn first and the mask comes only where that token is not allowed, for a second
            draw, as in llama.cpp; else the mask comes before every draw.

    Raises:
        ValueError: for another kind, or a text longer than `MAX_TEXT`. Whether the text can be read is found out by
            `Masks`.

    >>> Constraint("choices", " tea\\n\\n milk").choices
    (' tea', ' milk')
    """

    kind: Kind
    text: str
    retries: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind is {self.kind!r}; a constraint is one of {', '.join(KINDS)}.")
        if not isinstance(self.text, str):
            raise ValueError(f"text is {self.text!r:.60}; a constraint's text is a string.")
        if len(self.text) > MAX_TEXT:
            raise ValueError(f"the constraint has {len(self.text):,} characters; at most {MAX_TEXT:,} are read.")

    @property
    def choices(self) -> tuple[str, ...]:
        """The choices, each once, in their order."""
        return tuple(dict.fromkeys(line for line in self.text.replace("\r\n", "\n").split("\n") if line))

    def grammar(self) -> str:
        """Return the constraint in the grammar library's language (a variant of Lark).

        A schema's JSON is written as Python's `json.dumps` writes it: a space after each comma and colon, no other
        space outside strings. `no_forcing` makes a mask hold every token that can go on, and not only the tokens that
        the tokenizer itself would choose where the text is certain.

        Raises:
            ConstraintRefused: the text cannot be read.
        """
        import llguidance

        if any("\ud800" <= each <= "\udfff" for each in self.text):
            raise self.refuse("it holds half a surrogate pair, which is no character")
        write = {"regex": self._regex, "choices": self._alternatives}
        if self.kind == "json_schema":
            body = f"%json {json.dumps(self._schema())}"
        else:
            body = f"/{llguidance.regex_to_lark(write[self.kind](), use_ascii='')}/"
        return f'%llguidance {{"no_forcing": true}}\nstart: {body}\n'

    def refuse(self, detail: str) -> ConstraintRefused:
        """Return the error that says why the text cannot be read."""
        names = {"regex": "regular expression", "json_schema": "JSON schema", "choices": "list of choices"}
        return ConstraintRefused("grammar", f"The {names[self.kind]} cannot be used: {detail}.", detail)

    def _regex(self) -> str:
        if not self.text:
            raise self.refuse("it is empty")
        if (len(self.text) - len(self.text.rstrip("\\"))) % 2:
            raise self.refuse("it ends in a single backslash")
        return self.text

    def _alternatives(self) -> str:
        """Return a regular expression of the choices, each character by its code point."""
        if not self.choices:
            raise self.refuse("it has no choice; write one per line")
        return "|".join("".join(f"\\x{{{ord(each):X}}}" for each in choice) for choice in self.choices)

    def _schema(self) -> dict[str, Any]:
        try:
            schema = json.loads(self.text)
        except json.JSONDecodeError as error:
            raise self.refuse(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
        except (RecursionError, ValueError) as error:  # brackets too deep, an integer of thousands of digits
            raise self.refuse(str(error).rstrip(".")[:200]) from None
        if not isinstance(schema, dict):
            raise self.refuse(f'it must be a JSON object such as {{"type": "string"}}, not {self.text:.40}')
        return {**schema, "x-guidance": _SPACES}


_SPACES = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
