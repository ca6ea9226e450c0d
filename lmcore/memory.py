"""How much memory is free, for what would take gigabytes."""

from __future__ import annotations

from pathlib import Path

_MEMINFO = Path("/proc/meminfo")


def available_memory() -> int | None:
    """Return the bytes that a program can take without swapping, or None where the system does not say."""
    try:
        return parse_meminfo(_MEMINFO.read_text(encoding="ascii"))
    except OSError:
        return None


def parse_meminfo(text: str) -> int | None:
    """Return MemAvailable of Linux's /proc/meminfo in bytes (proc_meminfo(5)), or None when it is not there.

    >>> parse_meminfo("MemTotal: 16 kB\\nMemAvailable:   3 kB\\n")
    3072
    """
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    return None
