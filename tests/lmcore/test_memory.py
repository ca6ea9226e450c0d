"""What the system says of its memory."""

from pathlib import Path

from lmcore.memory import available_memory, parse_meminfo


def test_available_memory_is_what_the_system_says_in_bytes() -> None:
    assert parse_meminfo("MemTotal:       24689780 kB\nMemFree: 1 kB\nMemAvailable:   2048 kB\n") == 2 * 2**20
    assert parse_meminfo("MemTotal: 1 kB\n") is None


def test_this_machine_says_something_that_can_be_or_nothing() -> None:
    free = available_memory()
    assert (free is None) == (not Path("/proc/meminfo").exists())
    assert free is None or 0 < free < 2**60
