"""Processes that run chat templates, each ended when it takes too long."""

from __future__ import annotations

import atexit
import contextlib
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Literal

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


Kind = Literal["refused", "depth", "time", "memory", "broken"]
_PASSING = ("time", "memory", "broken")


class TemplateRefused(ValueError):
    """A template that did not render these messages: what it said, or what it did.

    Attributes:
        line: of the template, where that is known.
        kind: "refused" where the template raised an error, else what it had too much of, or "broken" where the process
            came to an end by itself.
    """

    def __init__(self, message: str, line: int | None = None, kind: Kind = "refused") -> None:
        super().__init__(message)
        self.line = line
        self.kind: Kind = kind

    @property
    def is_passing(self) -> bool:
        """Whether the same template may render the same messages another time, on a less busy machine for instance."""
        return self.kind in _PASSING


class _Process:
    """One process; it renders one template after the other.

    Raises:
        TemplateRefused: it does not start.
    """

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
        if not self._process.stdout.readline():  # it is ready: starting is not the template's time
            self.end()
            sentence = f"the process that runs chat templates did not start (status {self._process.returncode})."
            raise TemplateRefused(sentence, kind="broken")

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def ask(self, request: str, seconds: float) -> dict[str, Any]:
        """Return the answer; where there is none, the error "time" when the process was ended, "broken" when it did."""
        assert self._process.stdin is not None and self._process.stdout is not None
        is_late = threading.Event()

        def stop() -> None:
            is_late.set()
            self._process.kill()

        watch = threading.Timer(seconds, stop)
        watch.start()
        try:
            self._process.stdin.write(request + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            watch.cancel()
        if not answer.endswith("\n"):
            return {"error": "time" if is_late.is_set() else "broken"}
        found: dict[str, Any] = json.loads(answer)
        return found

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
        found = _asked(written)
        if found.get("error") == "broken":  # which need not be this template's doing
            found = _asked(written)
    kind: Kind | None = found.get("error")
    if kind is None:
        return found
    sentences: dict[Kind, str] = {
        "refused": found.get("message") or f"the template failed with {found.get('type')}.",
        "memory": f"the template needs more than {MEMORY // 2**20} MB of memory, the most that one gets; it was ended.",
        "depth": "the template calls itself too deep; it was ended.",
        "time": f"the template took longer than {SECONDS:g} seconds; it was ended.",
        "broken": "the process that ran the template broke down, twice.",
    }
    line = found.get("line")
    raise TemplateRefused(sentences[kind], line if isinstance(line, int) else None, kind)


def _asked(request: str) -> dict[str, Any]:
    process = _free()
    found = process.ask(request, SECONDS)
    if found.get("error") in _PASSING:  # after too much memory as well: little of it may be left
        process.end()
    else:
        _idle.append(process)
    return found


def _free() -> _Process:
    while True:
        try:
            process = _idle.pop()
        except IndexError:
            return _Process()
        if process.is_alive:
            return process
        process.end()


@atexit.register
def _end_all() -> None:
    while _idle:
        _idle.pop().end()
