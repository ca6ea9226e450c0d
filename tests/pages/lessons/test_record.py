"""What a reader has answered, as the browser keeps it."""

import pytest

from pages.lessons.record import GAVE_UP, Record


def test_a_record_comes_back_as_it_was_written() -> None:
    for record in (Record(), Record(4, {0: (2,), 11: (1, GAVE_UP), 3: (0, 2)})):
        assert Record.from_text(record.as_text()) == record


def test_what_is_no_record_is_refused() -> None:
    for text in ("", "x", "-1", "3_1", "3_1.2.3.4", "3_1.x", "3__"):
        with pytest.raises(ValueError):
            Record.from_text(text)
