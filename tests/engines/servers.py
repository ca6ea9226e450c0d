"""Real inference servers, started for tests: each in a virtual environment of its own, made on demand."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

KEY = "a-key-for-tests-0123456789"
MODEL = "smollm2"
FOLDER = Path(os.environ.get("GLASS_BOX_LM_SERVERS", Path(tempfile.gettempdir()) / "glass-box-lm-servers"))
"""Where the environments and the converted weights lie; they take some GB and are kept."""


def python_of(name: str) -> Path:
    """Return the Python of a server's environment; where it is there, the server is installed."""
    return Path(os.environ.get(f"GLASS_BOX_LM_{name.upper()}_VENV", FOLDER / name)) / "bin" / "python"


def install(name: str, *commands: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
    """Make a server's environment, then run pip in it with each list of arguments; what is there already is kept.

    Args:
        name: the server's.
        commands: what pip is given.
        environment: variables it is given besides those of this process.
    """
    python = python_of(name)
    print(f"installing {name} into {python.parent.parent}", flush=True)
    if not python.exists():
        venv.create(python.parent.parent, with_pip=True)
    for arguments in commands:
        command = [python, "-m", "pip", "-qq", *arguments]
        if subprocess.run(command, env={**os.environ, **(environment or {})}).returncode:
            sys.exit(f"{name} is not installed: pip {' '.join(arguments)} failed, for the reason above")


def smollm_file() -> Path:
    """Return the GGUF file of SmolLM2 that comes as a package."""
    from lmcore.checkpoints.packaged import PACKAGED

    return PACKAGED["smollm2-135m-instruct"].paths[0]


def free_port() -> int:
    """Return a port nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def in_use(port: int) -> bool:
    """Return whether a program listens on a port of this machine."""
    with socket.socket() as asking:
        asking.settimeout(5)
        return asking.connect_ex(("127.0.0.1", port)) == 0


class Server:
    """A server's process, killed at the end.

    Args:
        command: what starts it.
        port: where it listens.
        environment: variables it is given besides those of this process.
        seconds: how long it may take to answer for the first time.
    """

    def __init__(self, command: Sequence[object], port: int, environment: Mapping[str, str], seconds: float) -> None:
        if in_use(port):
            raise RuntimeError(f"port {port} belongs to another program already; stop it, or give another port.")
        self.port = port
        self.base_url = f"http://127.0.0.1:{port}/v1"
        self.log = FOLDER / f"{port}.log"
        FOLDER.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(part) for part in command],
                env={**os.environ, **environment},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._wait(seconds)

    def _wait(self, seconds: float) -> None:
        request = urllib.request.Request(f"{self.base_url}/models", headers={"Authorization": f"Bearer {KEY}"})
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self._process.poll() is not None:
                break
            try:
                urllib.request.urlopen(request, timeout=5).close()
                return
            except (urllib.error.URLError, OSError):
                time.sleep(0.5)
        self.close()
        raise RuntimeError(
            f"the server did not answer; its last words:\n{self.log.read_text(errors='replace')[-2000:]}"
        )

    def wait(self) -> int:
        """Wait until the process ends."""
        return self._process.wait()

    def close(self) -> None:
        """Kill the process and those it started."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, 15)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, 9)
                self._process.wait()


def main(start, installed, install_it) -> None:  # noqa: ANN001
    """Run a server in the foreground: `python -m tests.engines.<server> [port]`, or `install` instead of a port."""
    if not installed():
        install_it()
    if sys.argv[1:2] == ["install"]:
        return
    try:
        server = start(int(sys.argv[1]) if len(sys.argv) > 1 else 8000)
    except RuntimeError as error:
        sys.exit(str(error))
    print(f"{server.base_url}, model {MODEL}, key {KEY}; its output is in {server.log}", flush=True)
    try:
        server.wait()
    except KeyboardInterrupt:
        server.close()
