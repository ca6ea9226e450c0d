"""Processes that run chat templates, each ended when it takes too long."""

from __future__ import annotations

import atexit
import contextlib
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

SECONDS = 5.0
"""How long a template may take; all of a model's real ones take some milliseconds."""
MEMORY = 1 << 29
"""How many bytes its process may take."""
_MOST_PROCESSES = 4

# lmcore's own __init__ loads torch, which takes a second and more memory than a template may have: here both packages
# are only folders.
_START = """
import sys, types
for name, folder in (("lmcore", sys.argv[1]), ("lmcore.chat", sys.argv[1] + "/chat")):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [folder]
from lmcore.chat.worker import serve
serve()
"""


class TemplateRefused(ValueError):
    """A template that did not render these messages: what it said, or what it did.

    Attributes:
        line: of the template, where that is known.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class _Process:
    """One process; it renders one template after the other."""

    def __init__(self) -> None:
        folder = Path(__file__).parent.parent
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, str(folder), str(MEMORY)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()  # it is ready: starting is not the template's time

    def ask(self, request: str, seconds: float) -> str:
        """Return the answer, or "" when there was none and the process has ended."""
        assert self._process.stdin is not None and self._process.stdout is not None
        watch = threading.Timer(seconds, self._process.kill)
        watch.start()
        try:
            self._process.stdin.write(request + "\n")
            self._process.stdin.flush()
            return self._process.stdout.readline()
        except BrokenPipeError:
            return ""
        finally:
            watch.cancel()

    def end(self) -> None:
        """End it, and leave nothing of it."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


_idle: list[_Process] = []
_room = threading.BoundedSemaphore(_MOST_PROCESSES)


def ask(request: dict[str, Any]) -> dict[str, Any]:
    """Have a request answered by a process that has nothing to do, or a new one.

    Raises:
        TemplateRefused: the template raised an error, or took too much time, memory or depth.
    """
    written = json.dumps(request)
    with _room:
        try:
            process = _idle.pop()
        except IndexError:
            process = _Process()
        answer = process.ask(written, SECONDS)
        found: dict[str, Any] = json.loads(answer) if answer.endswith("\n") else {"error": "time"}
        if found.get("error") == "time":
            process.end()
        else:
            _idle.append(process)
    kind = found.get("error")
    if kind is None:
        return found
    sentences: dict[str, str] = {
        "refused": found.get("message") or f"the template failed with {found.get('type')}.",
        "memory": f"the template needs more than {MEMORY // 2**20} MB of memory, the most that one gets; it was ended.",
        "depth": "the template calls itself too deep; it was ended.",
        "time": f"the template took longer than {SECONDS:g} seconds, or its process broke down; it was ended.",
    }
    line = found.get("line")
    raise TemplateRefused(sentences[kind], line if isinstance(line, int) else None)


@atexit.register
def _end_all() -> None:
    while _idle:
        _idle.pop().end()
