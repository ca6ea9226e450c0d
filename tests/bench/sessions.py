"""Sessions of the real server without a browser: one websocket each, speaking what the page in a browser speaks.

    python -m tests.bench.sessions [model] [number of sessions] [tokens]

prints what a server with one model takes in memory, with one session and with many, and after they have left. With a
number of tokens each session generates so many, one after the other; a model may be the path of a GGUF file.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from lmcore.loading.models import FOLDER_VARIABLE

ROOT = Path(__file__).parents[2]
_PATIENCE = 120  # seconds
_FREED_WITHIN = 240  # seconds; a reader may come back within two minutes


class Server:
    """`streamlit run app.py` in a process of its own."""

    def __init__(self, port: int, process: subprocess.Popen[bytes], seconds_to_start: float) -> None:
        self.port, self.process, self.seconds_to_start = port, process, seconds_to_start

    def processor_seconds(self) -> float:
        """Return the seconds of processor time it has used so far; Linux only."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident(self) -> int:
        """Return the bytes of its memory, mapped weights too; Linux only."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS"))


@contextlib.contextmanager
def running_server(**environment: str) -> Iterator[Server]:
    """Start a server that answers, and stop it afterwards."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless=true", f"--server.port={port}"]
    process = subprocess.Popen(command, cwd=ROOT, env=os.environ | environment, stdout=subprocess.DEVNULL)
    try:
        started = time.monotonic()
        while True:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://localhost:{port}/_stcore/health"):
                break
            if process.poll() is not None or time.monotonic() - started > _PATIENCE:
                raise RuntimeError("the server did not start")
            time.sleep(0.05)
        yield Server(port, process, time.monotonic() - started)
    finally:
        process.terminate()
        process.wait()


class Session:
    """One visitor.

    Args:
        server: whom to visit.
        page: the address of the page, e.g. "sampling".
        cookie: what the browser kept of an earlier visit, e.g. "class-student=…".
        state: what the address says after it, e.g. {"prompt": "The king"}.
    """

    def __init__(self, server: Server, page: str, *, cookie: str = "", **state: str) -> None:
        self._page, self._query = page, urllib.parse.urlencode(state)
        self._pages: dict[str, str] = {}  # address -> what the server calls the page
        self._widgets: dict[str, tuple[str, str]] = {}  # key -> id and the fragment it stands in
        self._values: dict[str, int | str] = {}
        self._pressed = ""
        self._open = contextlib.ExitStack()
        address = f"ws://localhost:{server.port}/_stcore/stream"
        self._socket = self._open.enter_context(
            connect(
                address,
                subprotocols=[Subprotocol("streamlit")],
                max_size=None,
                additional_headers={"Cookie": cookie} if cookie else None,
            )
        )

    def run(self, fragment: str = "") -> list[ForwardMsg]:
        """Run the page as a browser does; return what the server sent.

        Raises:
            RuntimeError: when the page shows an exception or an error.
        """
        message = BackMsg()
        script = message.rerun_script
        script.query_string, script.fragment_id = self._query, fragment
        script.page_script_hash = self._pages.get(self._page, "")
        script.page_name = "" if self._pages else self._page
        for key, value in self._values.items():
            state = script.widget_states.widgets.add(id=self._widgets[key][0])
            if isinstance(value, str):
                state.string_value = value
            else:
                state.double_array_value.data.append(value)
        if self._pressed:
            script.widget_states.widgets.add(id=self._widgets[self._pressed][0], trigger_value=True)
        self._socket.send(message.SerializeToString())
        messages = []
        while True:
            received = ForwardMsg.FromString(self._socket.recv(timeout=_PATIENCE))  # type: ignore[arg-type]
            messages.append(received)
            self._note(received)
            if received.HasField("script_finished") and received.script_finished in (
                ForwardMsg.FINISHED_SUCCESSFULLY,
                ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY,
            ):
                return messages

    def set(self, key: str, value: int | str) -> list[ForwardMsg]:
        """Move a slider or write into a field; return what the server sent."""
        self._values[key] = value
        return self.run(self._widgets[key][1])

    def press(self, key: str) -> list[ForwardMsg]:
        """Press a button; return what the server sent."""
        self._pressed = key
        try:
            return self.run(self._widgets[key][1])
        finally:
            self._pressed = ""

    def fragment_of(self, key: str) -> str:
        """Return the fragment that a part of the page stands in, to run it again as the page does by itself."""
        return self._widgets[key][1]

    def go_to(self, page: str) -> list[ForwardMsg]:
        """Open another page of the navigation; the server remembers what was chosen."""
        self._page = page
        self._values.clear()
        return self.run()

    def close(self) -> None:
        """Leave."""
        self._open.close()

    def _note(self, message: ForwardMsg) -> None:
        if message.HasField("navigation"):
            self._pages = {page.url_pathname: page.page_script_hash for page in message.navigation.app_pages}
        if not (message.HasField("delta") and message.delta.HasField("new_element")):
            return
        element = message.delta.new_element
        if element.HasField("exception") or (element.HasField("alert") and element.alert.format == 1):
            raise RuntimeError(f"the page shows an error: {element}")
        widget = getattr(element, element.WhichOneof("type"))
        if getattr(widget, "id", "").startswith("$$ID-"):
            key = widget.id.removeprefix("$$ID-").partition("-")[2]
            self._widgets[key] = widget.id, message.delta.fragment_id


def main() -> None:
    """Print the server's memory with one session and with many."""
    model = sys.argv[1] if len(sys.argv) > 1 else "smollm2-135m-instruct"
    number = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    tokens = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    environment = {}
    if (file := Path(model)).suffix == ".gguf":
        model, environment[FOLDER_VARIABLE] = file.stem, str(file.parent)
    state = {"model": model, "prompt": "The capital of France is", "lang": "en"}
    more = {"max_new_tokens": str(tokens), "pace": "0", "stop_ids": "0", "temperature": "1"} if tokens else {}
    with running_server(**environment) as server:
        empty = server.resident()
        sessions = []
        for index in range(number):
            sessions.append(Session(server, "generation" if tokens else "logits", **state, **more))
            sent = sum(message.ByteSize() for message in sessions[-1].run())
            if tokens:
                generate(sessions[-1], tokens)
            if index == 0:
                first = server.resident()
                print(f"{model}: the server takes {empty / 1e6:.0f} MB before, {first / 1e6:.0f} MB with one session")
        many = server.resident()
        print(
            f"{many / 1e6:.0f} MB with {number} sessions: {(many - first) / (number - 1) / 1e6:.1f} MB a session more"
        )
        print(f"the last session was sent {sent / 1e6:.2f} MB")
        for session in sessions[1:]:
            session.close()
        deadline = time.monotonic() + _FREED_WITHIN
        while (left := server.resident()) > first + (many - first) / 4 and time.monotonic() < deadline:
            time.sleep(5)
        print(f"{left / 1e6:.0f} MB {time.monotonic() - deadline + _FREED_WITHIN:.0f} s after all but one have left")
        sessions[0].close()


def generate(session: Session, tokens: int) -> None:
    """Run a generation to its end, as the page does."""
    messages = session.press("generation.run")
    for _ in range(10_000):
        text = " ".join(str(message.delta.new_element) for message in messages if message.HasField("delta"))
        if f"{tokens} of at most {tokens} new tokens" in text:
            return
        time.sleep(0.3)
        messages = session.run(session.fragment_of("generation.text"))
    raise RuntimeError("the generation did not end")


if __name__ == "__main__":
    main()
