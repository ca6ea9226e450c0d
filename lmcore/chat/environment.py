"""Jinja as chat templates expect it, with text that knows its origin and a record of the lines that ran.

The settings are those of transformers' apply_chat_template: the immutable sandbox, trim_blocks, lstrip_blocks, loop
controls, `generation` blocks, `raise_exception`, `strftime_now`, and a `tojson` that escapes nothing. What a template
says itself becomes `Marked` text when the template is compiled; nothing is computed before it runs.

Part of the process in which templates run: nothing here imports the rest of lmcore.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, NoReturn

import jinja2.ext
import jinja2.meta
from jinja2 import Template, nodes, pass_eval_context
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError, TemplateError, TemplateSyntaxError
from jinja2.filters import FILTERS
from jinja2.nodes import EvalContext
from jinja2.parser import Parser
from jinja2.runtime import Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from lmcore.chat.marks import FIRST_LINE, Marked, joined, marks_of

_MOST_LINES = 0xFFFF


def line_mark(line: int) -> str:
    """Return the mark of what a template says itself in this line."""
    return chr(FIRST_LINE + min(line, _MOST_LINES) - 1)


class _Generator(CodeGenerator):
    """Compiles a template whose words are `Marked`, and which tells the line of each statement before it runs."""

    def blockvisit(self, nodes: Iterable[nodes.Node], frame: Frame) -> None:
        self.writeline("pass")
        for node in nodes:
            self.writeline(f"environment.ran({self._lines(node)!r})")
            self.visit(node, frame)

    def visit_Const(self, node: nodes.Const, frame: Frame) -> None:
        if isinstance(node.value, str):
            self.write(self._word(node.value, node.lineno))
        else:
            super().visit_Const(node, frame)

    def visit_TemplateData(self, node: nodes.TemplateData, frame: Frame) -> None:
        self.write(self._word(node.data, node.lineno))

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        self.write("concat((")
        for part in node.nodes:
            self.write("str(")
            self.visit(part, frame)
            self.write("), ")
        self.write("))")

    def _output_child_to_const(self, node: nodes.Expr, frame: Frame, finalize: Any) -> str:
        raise nodes.Impossible  # at run time, where its origin is known

    def _lines(self, node: nodes.Node) -> tuple[int, ...]:
        """Return the lines that run when a statement does: those of an output's parts, else the first."""
        if not isinstance(node, nodes.Output):
            return (node.lineno,)
        found = {node.lineno}
        for child in node.nodes:
            for inner in (child, *child.find_all(nodes.Expr)):
                found |= set(range(inner.lineno, inner.lineno + self._height(inner)))
        return tuple(sorted(found))

    def _height(self, node: nodes.Node) -> int:
        """Return over how many lines a text of the template reaches in its source."""
        if isinstance(node, nodes.TemplateData):
            return max(len(node.data.splitlines()), 1)
        if isinstance(node, nodes.Const) and isinstance(node.value, str):
            assert isinstance(self.environment, ChatEnvironment)
            # A new line that the source spells as an escape is none there.
            return 1 + node.value.count("\n") if node.value in self.environment.source else 1
        return 1

    def _word(self, text: str, line: int) -> str:
        assert isinstance(self.environment, ChatEnvironment)
        self.environment.words.append(Marked(text, line_mark(line) * len(text)))
        return f"environment.words[{len(self.environment.words) - 1}]"


class _Generation(jinja2.ext.Extension):
    """The block {% generation %}, which says what of a conversation the assistant wrote."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> nodes.CallBlock:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        block = nodes.CallBlock(self.call_method("_written"), [], [], body)
        block.set_lineno(line)
        return block

    @pass_eval_context
    def _written(self, _context: EvalContext, caller: Macro) -> str:
        assert isinstance(self.environment, ChatEnvironment)
        text = caller()
        start = sum(map(len, self.environment.blocks))
        self.environment.generated.append((start, start + len(text)))
        return text


class _Dict:
    """`dict` without its attributes, through which a template could reach further."""

    def __call__(self, *args: Any, **values: Any) -> dict[Any, Any]:
        return dict(*args, **values)

    def fromkeys(self, *args: Any) -> dict[Any, Any]:
        return dict.fromkeys(*args)


class _Namespace(Namespace):
    """Jinja's namespace without names that begin with an underscore."""

    def __init__(*args: Any, **values: Any) -> None:  # a value may be called "self"
        own, *given = args
        attributes = dict(*given, **values)
        for name in attributes:
            _Namespace._check(name)
        Namespace.__init__(own, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _Namespace._check(name)
        super().__setitem__(name, value)

    @staticmethod
    def _check(name: object) -> None:
        if isinstance(name, str) and name.startswith("_"):
            raise SecurityError(
                f"Chat templates cannot store underscore-prefixed attributes on a namespace, but got {name!r}. "
                "Please rename the attribute."
            )


class ChatEnvironment(ImmutableSandboxedEnvironment):
    """The environment of one template.

    Attributes:
        source: the template.
        words: what the template says itself, as its code refers to it.
        lines: the lines that ran.
        blocks: what was written so far.
        generated: (start, end) in characters of what {% generation %} blocks wrote.
        now: the time that `strftime_now` tells; the machine's where it is None.
    """

    code_generator_class = _Generator
    concat = staticmethod(joined)  # type: ignore[assignment]

    def __init__(self, source: str) -> None:
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, optimized=False, extensions=[_Generation, jinja2.ext.loopcontrols]
        )
        self.source = source
        self.words: list[Marked] = []
        self.now: datetime | None = None
        self.forget()
        self.filters |= {"tojson": _tojson, "join": _join, "indent": _indent}
        self.globals |= {
            "raise_exception": _raise,
            "strftime_now": lambda form: (self.now or datetime.now()).strftime(form),
            "dict": _Dict(),
            "namespace": _Namespace,
        }

    def forget(self) -> None:
        """Begin another rendering."""
        self.lines: set[int] = set()
        self.blocks: list[str] = []
        self.generated: list[tuple[int, int]] = []

    def ran(self, lines: tuple[int, ...]) -> None:
        """Take note of lines that are about to run; compiled templates call it."""
        self.lines.update(lines)

    def handle_exception(self, source: str | None = None) -> NoReturn:
        """Raise the error as it is: Jinja would look for the line in files, and here there are none."""
        error = sys.exc_info()[1]
        assert error is not None
        if isinstance(error, TemplateSyntaxError):
            error.translated = True  # its text is the message alone
        raise error


@lru_cache(maxsize=16)
def compiled(source: str) -> tuple[ChatEnvironment, Template]:
    """Return a template, and the environment that belongs to it alone."""
    environment = ChatEnvironment(source)
    return environment, environment.from_string(source)


@lru_cache(maxsize=16)
def asked_for(source: str) -> list[str]:
    """Return the names that a template uses and does not set, sorted."""
    environment, _template = compiled(source)
    return sorted(jinja2.meta.find_undeclared_variables(environment.parse(source)) - environment.globals.keys())


def _raise(message: str) -> None:
    raise TemplateError(message)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Write JSON; it is all of one origin when every text in the value is, brackets and numbers with it."""
    text = json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
    origins = set("".join(map(marks_of, _texts(value))))
    return Marked(text, origins.pop() * len(text)) if len(origins) == 1 else text


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a value, without the names of fields that it was given with."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (key for key in value if isinstance(key, Marked))
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts(inner)


@pass_eval_context
def _join(context: EvalContext, value: Iterable[Any], d: str = "", attribute: str | int | None = None) -> str:
    return _join_of_jinja(context, value, Marked(d, marks_of(d)) if isinstance(d, str) else d, attribute)


_join_of_jinja: Callable[..., str] = FILTERS["join"]


def _indent(s: str, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    """Indent as Jinja's filter does, which joins lines with a text of its own."""
    margin = width if isinstance(width, str) else " " * width
    if not isinstance(s, Marked):
        return FILTERS["indent"](s, width, first, blank)
    lines = (s + "\n").splitlines()
    after = [margin + line if line or blank else line for line in lines[1:]]
    text = Marked("\n", "\0").join([lines[0], *after])
    return margin + text if first else text
