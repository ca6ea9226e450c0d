"""The body and the address out of a curl line; what its headers hold is never looked at."""

from __future__ import annotations

import re
import shlex

__all__ = ["from_curl"]

_DATA = ("-d", "--data", "--data-raw", "--data-binary", "--data-ascii", "--json")
_WITH_VALUE = {
    *("-H", "--header", "-X", "--request", "-u", "--user", "-o", "--output", "-A", "--user-agent", "-b", "--cookie"),
    *("-m", "--max-time", "--connect-timeout", "-e", "--referer", "-x", "--proxy", "--oauth2-bearer", "-w", "--retry"),
}


def from_curl(text: str) -> tuple[str, str]:
    """Return the address and the body of a curl line.

    Raises:
        ValueError: no body, one that lies in a file, or quotes that do not close.

    >>> from_curl("curl http://localhost:8000/v1/completions -H 'Authorization: Bearer x' -d '{\\"top_p\\": 0.9}'")
    ('http://localhost:8000/v1/completions', '{"top_p": 0.9}')
    """
    joined = re.sub(r"[\\^`][ \t]*\r?\n", " ", text)  # a line goes on after \, in Windows after ^ or `
    try:
        words = shlex.split(joined.strip().removeprefix("$ "))
    except ValueError:
        raise ValueError("The curl line has a quote that does not close. Paste all of it.") from None
    address, bodies = "", []
    place = 1
    while place < len(words):
        word = words[place]
        name, has_value, value = word.partition("=")
        if word in _DATA or (has_value and name in _DATA):
            bodies.append(
                value if has_value and word not in _DATA else words[place + 1] if place + 1 < len(words) else ""
            )
            place += 1 if has_value and word not in _DATA else 2
        elif word.startswith("-d") and not word.startswith("--") and len(word) > 2:
            bodies.append(word[2:])
            place += 1
        elif word == "--url" and place + 1 < len(words):
            address = words[place + 1]
            place += 2
        elif word in _WITH_VALUE:
            place += 2
        else:
            if not word.startswith("-"):
                address = word
            place += 1
    if not bodies:
        raise ValueError("The curl line has no body: -d, --data or --json with the JSON that is sent.")
    if bodies[0].startswith("@"):
        raise ValueError("The body of the curl line lies in a file. Paste what is in the file.")
    return address, bodies[0]
