"""What the system says of its memory."""

from pathlib import Path

from lmcore.memory import SharedLimit, available_memory, parse_meminfo


def test_available_memory_is_what_the_system_says_in_bytes() -> None:
    assert parse_meminfo("MemTotal:       24689780 kB\nMemFree: 1 kB\nMemAvailable:   2048 kB\n") == 2 * 2**20
    assert parse_meminfo("MemTotal: 1 kB\n") is None


def test_this_machine_says_something_that_can_be_or_nothing() -> None:
    free = available_memory()
    assert (free is None) == (not Path("/proc/meminfo").exists())
    assert free is None or 0 < free < 2**60


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
