"""Codes that are tried: so many a minute from one address and from all."""

from pages.classes.guesses import FROM_ALL, FROM_ONE, Guesses


def test_wrong_codes_are_slowed_from_one_address_and_from_all() -> None:
    now = 0.0
    guesses = Guesses(lambda: now)
    for _ in range(FROM_ONE):
        assert guesses.allowed("a")
        guesses.wrong("a")
    assert not guesses.allowed("a") and guesses.allowed("b")
    now = 59.0
    for n in range(FROM_ALL - FROM_ONE):
        guesses.wrong(str(n))
    assert not guesses.allowed("c")
    now = 60.5
    assert guesses.allowed("c") and guesses.allowed("a")
