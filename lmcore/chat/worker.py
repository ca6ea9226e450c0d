"""The process in which chat templates run: a template is a program by strangers, and a process can be ended.

It reads a request a line, JSON, and answers with a line: the text with its marks, or what the template refused. After
the first imports it can open no file, and the memory it may take is limited, as far as the system has such limits.
"""

from __future__ import annotations

import contextlib
import json
import sys
import traceback
from collections.abc import Callable
from datetime import datetime
from typing import Any

from jinja2 import TemplateSyntaxError

from lmcore.chat.environment import asked_for, compiled
from lmcore.chat.marks import Marked, joined, marks_of

_CONTINUED = "CONTINUE_FINAL_MESSAGE_TAG "  # transformers finds the end of the message to continue with these words


def serve() -> None:
    """Say that all is ready, then answer requests until there are no more."""
    _limit(int(sys.argv[2]))
    _say({})
    for line in sys.stdin:
        _say(_answer(json.loads(line)))


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        return render(request)
    except MemoryError:
        return {"error": "memory"}
    except RecursionError:
        return {"error": "depth"}
    except Exception as error:  # whatever a template does
        line = error.lineno if isinstance(error, TemplateSyntaxError) else _line(error, request["source"])
        return {"error": "refused", "message": str(error), "type": type(error).__name__, "line": line}


def _line(error: Exception, source: str) -> int | None:
    """Return the template's line that raised an error."""
    lines = [
        compiled(source)[1].get_corresponding_lineno(line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == "<template>"
    ]
    return lines[-1] if lines else None


def render(request: dict[str, Any]) -> dict[str, Any]:
    """Render a request: `source`, `variables` (each with the mark of its texts), `messages`, `prompt` and so on."""
    environment, template = compiled(request["source"])
    environment.now = datetime.fromisoformat(request["now"]) if request["now"] else None
    variables = {name: _marked(value, mark) for name, (value, mark) in request["variables"].items()}
    messages = [
        {name: _marked(value, mark) for name, (value, mark) in message.items()} for message in request["messages"]
    ]
    if request["continued"]:
        _tag(messages[-1])

    def once(add_generation_prompt: bool) -> Marked:
        environment.forget()
        size = 0
        for block in template.generate(
            **{"messages": messages, "add_generation_prompt": add_generation_prompt, **variables}
        ):
            environment.blocks.append(block)
            size += len(block)
            if size > request["longest"]:
                raise ValueError(
                    f"the template writes more than {request['longest']:,} characters; that is where it was ended."
                )
        return joined(environment.blocks)

    try:
        without = once(False) if request["prompt"] else None
        text = once(request["prompt"])
        if request["continued"]:
            text = _untag(text)
        n = len(text)  # what goes on after the message to continue was generated, and is cut
        return {
            "text": text,
            "marks": marks_of(text),
            "lines": sorted(environment.lines),
            "generated": [(start, min(end, n)) for start, end in environment.generated if start < n],
            "variables": asked_for(request["source"]),
            "before_prompt": len(without) if without is not None and text.startswith(without) else None,
        }
    finally:
        environment.forget()  # it is kept for the next request, and what was written is large


def _marked(value: Any, mark: str) -> Any:
    """Return a value whose texts all have this mark; the names of its fields have none."""
    if isinstance(value, str):
        return Marked(value, mark * len(value))
    if isinstance(value, list):
        return [_marked(item, mark) for item in value]
    if isinstance(value, dict):
        return {key: _marked(item, mark) for key, item in value.items()}
    return value


def _tag(message: dict[str, Any]) -> None:
    content = message.get("content")
    if isinstance(content, str):
        message["content"] = content + _CONTINUED
        return
    for part in reversed(content if isinstance(content, list) else []):
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            part["text"] = part["text"] + _CONTINUED
            return
    raise ValueError("the last message has no text that could be continued.")


def _untag(text: Marked) -> Marked:
    at = str.rfind(text, _CONTINUED.strip())
    if at < 0:
        raise ValueError("the template does not write the end of the last message, so it cannot be continued.")
    kept = text[:at]
    return kept if str.startswith(text, _CONTINUED, at) else kept.rstrip()


def _limit(memory: int) -> None:
    """Load what templates need later, then allow no more files, no other programs, and so many bytes of memory."""
    warm = {"source": "{{ strftime_now('%Y') }}{{ lipsum(1)[:1] }}", "variables": {}, "messages": [], "prompt": True}
    render({**warm, "now": None, "continued": False, "longest": 100})
    try:
        import resource
    except ImportError:  # Windows has no such limits; the time is limited there too
        return
    limits: dict[str, int] = {"RLIMIT_AS": memory, "RLIMIT_FSIZE": 0, "RLIMIT_NPROC": 0, "RLIMIT_NOFILE": 0}
    set_limit: Callable[[int, tuple[int, int]], None] = resource.setrlimit
    for name, limit in limits.items():
        with contextlib.suppress(ValueError, OSError):  # macOS refuses some; a lower one stays as it is
            set_limit(getattr(resource, name), (limit, limit))
