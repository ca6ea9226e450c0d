"""Sessions of the real server without a browser: one websocket each, speaking what the page in a browser speaks.

    python -m tests.bench.sessions [model] [number of sessions]

prints what a server with one model takes in memory, with one session and with many.
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

ROOT = Path(__file__).parents[2]
_PATIENCE = 120  # seconds


class Server:
    """`streamlit run app.py` in a process of its own."""

    def __init__(self, port: int, process: subprocess.Popen[bytes]) -> None:
        self.port, self.process = port, process

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
        yield Server(port, process)
    finally:
        process.terminate()
        process.wait()


class Session:
    """One visitor.

    Args:
        server: whom to visit.
        page: the address of the page, e.g. "sampling".
        state: what the address says after it, e.g. {"prompt": "The king"}.
    """

    def __init__(self, server: Server, page: str, **state: str) -> None:
        self._page, self._state = page, state
        self._open = contextlib.ExitStack()
        address = f"ws://localhost:{server.port}/_stcore/stream"
        self._socket = self._open.enter_context(
            connect(address, subprotocols=[Subprotocol("streamlit")], max_size=None)
        )  # fmt: skip

    def run(self) -> list[ForwardMsg]:
        """Run the page as a browser does that opens it; return what the server sent.

        Raises:
            RuntimeError: when the page shows an exception or an error.
        """
        message = BackMsg()
        message.rerun_script.query_string = urllib.parse.urlencode(self._state)
        message.rerun_script.page_name = self._page
        self._socket.send(message.SerializeToString())
        messages = []
        while True:
            received = ForwardMsg.FromString(self._socket.recv(timeout=_PATIENCE))  # type: ignore[arg-type]
            messages.append(received)
            if received.HasField("delta") and received.delta.HasField("new_element"):
                element = received.delta.new_element
                if element.HasField("exception") or (element.HasField("alert") and element.alert.format == 1):
                    raise RuntimeError(f"the page shows an error: {element}")
            if received.HasField("script_finished") and received.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY:
                return messages

    def close(self) -> None:
        """Leave."""
        self._open.close()


def main() -> None:
    """Print the server's memory with one session and with many."""
    model = sys.argv[1] if len(sys.argv) > 1 else "smollm2-135m-instruct"
    number = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    with running_server() as server:
        empty = server.resident()
        sessions = []
        for index in range(number):
            sessions.append(Session(server, "logits", model=model, prompt="The capital of France is", lang="en"))
            sent = sum(message.ByteSize() for message in sessions[-1].run())
            if index == 0:
                first = server.resident()
                print(f"{model}: the server takes {empty / 1e6:.0f} MB before, {first / 1e6:.0f} MB with one session")
        many = server.resident()
        print(
            f"{many / 1e6:.0f} MB with {number} sessions: {(many - first) / (number - 1) / 1e6:.1f} MB a session more"
        )
        print(f"the last session was sent {sent / 1e6:.2f} MB")
        for session in sessions:
            session.close()


if __name__ == "__main__":
    main()
