"""Two replicas of the explorer behind nginx: `python -m tests.deployment.replicas [port]`, until Ctrl+C."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_PATIENCE = 120  # seconds


@dataclass
class Deployment:
    """What runs: the address of nginx, the replicas by their addresses, and nginx's log."""

    url: str
    replicas: dict[str, subprocess.Popen[bytes]]
    log: Path

    def served(self, path: str, after: int = 0) -> list[str]:
        """Return which replicas answered requests for a path, in order, after some lines of the log.

        The log is written a moment after the answer: there are some seconds for the first one to appear.
        """
        for _ in range(50):
            lines = [line.split() for line in self.log.read_text().splitlines()[after:]]
            if found := [replica for replica, _status, _method, asked in lines if asked.startswith(path)]:
                return found
            time.sleep(0.1)
        return []


@contextlib.contextmanager
def running(folder: Path, port: int | None = None, address: str = "127.0.0.1") -> Iterator[Deployment]:
    """Start two replicas and nginx in front of them, wait until they answer, and end them afterwards.

    Args:
        folder: for nginx's own files.
        port: of nginx; a free one when None.
        address: nginx listens on it; "0.0.0.0" for a network.
    """
    first, second, free = _free_port(), _free_port(), _free_port()
    port = port or free
    template = (Path(__file__).parent / "nginx.conf").read_text(encoding="utf-8")
    for name, value in {"folder": folder, "first": first, "second": second, "listen": f"{address}:{port}"}.items():
        template = template.replace(f"{{{name}}}", str(value))
    config = folder / "nginx.conf"
    config.write_text(template, encoding="utf-8")
    # One secret for both, so that a browser that has to change its replica keeps a cookie that is understood.
    environment = os.environ | {"STREAMLIT_SERVER_COOKIE_SECRET": secrets.token_hex(32)}
    with contextlib.ExitStack() as started:
        replicas = {
            f"127.0.0.1:{number}": started.enter_context(_process(_replica(number), environment))
            for number in (first, second)
        }
        nginx = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin") or "nginx"
        started.enter_context(_process([nginx, "-c", str(config), "-p", str(folder), "-g", "daemon off;"], environment))
        for each in (*replicas, f"127.0.0.1:{port}"):
            _wait_for(f"http://{each}/_stcore/health")
        yield Deployment(f"http://127.0.0.1:{port}", replicas, folder / "access.log")


def _replica(port: int) -> list[str]:
    options = [f"--server.port={port}", "--server.address=127.0.0.1", "--server.headless=true"]
    return [sys.executable, "-m", "streamlit", "run", "app.py", *options]


@contextlib.contextmanager
def _process(command: list[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def main() -> None:
    """Serve until Ctrl+C."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8080
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), port, "0.0.0.0") as deployment:
        print(f"two replicas behind nginx on port {port} of this machine: {deployment.url}")
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                time.sleep(3600)


if __name__ == "__main__":
    main()
