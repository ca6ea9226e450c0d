"""What the system says of its memory."""

from pathlib import Path

import pytest

from lmcore.memory import SharedLimit, available_memory

MEMINFO = Path("/proc/meminfo")


def test_free_memory_is_what_the_kernel_says() -> None:
    if not MEMINFO.exists():
        pytest.skip("only Linux says it in a file")
    (line,) = (line for line in MEMINFO.read_text().splitlines() if line.startswith("MemAvailable:"))
    assert available_memory() == pytest.approx(int(line.split()[1]) * 1024, rel=0.2)


class Keeper:
    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes

    def forget(self) -> None:
        self.nbytes = 0


def test_who_used_theirs_longest_ago_forgets_it_first() -> None:
    limit = SharedLimit(100)
    first, second, third = keepers = [Keeper(40), Keeper(40), Keeper(20)]
    for each in (*keepers, first):
        limit.used(each)
    assert limit.nbytes == 100
    third.nbytes = 30
    limit.used(third)
    assert [each.nbytes for each in keepers] == [40, 0, 30]
    second.nbytes = 500  # more than the limit alone: it keeps that, and all others forget
    limit.used(second)
    assert [each.nbytes for each in keepers] == [0, 500, 0]
    assert limit.nbytes == 500


def test_who_is_gone_counts_no_more() -> None:
    limit = SharedLimit(100)
    keeper = Keeper(60)
    limit.used(keeper)
    del keeper
    assert limit.nbytes == 0
