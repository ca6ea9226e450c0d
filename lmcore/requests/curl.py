"""The body and the address out of a curl line; what its headers hold is never looked at."""

from __future__ import annotations

import re
import shlex

__all__ = ["CURL", "PROBLEMS", "from_curl"]

OPEN_QUOTE = "The curl line has a quote that does not close. Paste all of it."
NO_BODY = "The curl line has no body: -d, --data or --json with the JSON that is sent."
IN_A_FILE = "The body of the curl line lies in a file. Paste what is in the file."
PROBLEMS = (OPEN_QUOTE, NO_BODY, IN_A_FILE)
"""Every sentence that `from_curl` raises."""

_DATA = {"-d", "--data", "--data-raw", "--data-binary", "--data-ascii", "--data-urlencode", "--json"}
_WITH_VALUE = {
    *("--header", "--request", "--user", "--output", "--user-agent", "--cookie", "--cookie-jar", "--max-time"),
    *("--connect-timeout", "--referer", "--proxy", "--proxy-user", "--noproxy", "--oauth2-bearer", "--write-out"),
    *("--retry", "--retry-delay", "--retry-max-time", "--cacert", "--capath", "--cert", "--key", "--config"),
    *("--resolve", "--connect-to", "--interface", "--limit-rate", "--unix-socket", "--dump-header", "--form"),
}
"""Long options whose next word is their value; another one's is told from the address by its missing `://`."""
_SHORT_WITH_VALUE = "AbcCdDeEFHKmoPQrtTuUwxXyYz"
_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\$'(?P<ansi>(?:\\.|[^'\\])*)'|\\.""", re.DOTALL)
_ESCAPE = re.compile(
    r"(?P<bytes>(?:\\x[0-9a-fA-F]{1,2})+)|\\u(?P<code>[0-9a-fA-F]{1,4})|\\(?P<letter>[abefnrtv\\'\"?])"
)
CURL = re.compile(r"(?:\$\s+)?(?:\w+=\S*\s+)*curl(?:\.exe)?\s", re.IGNORECASE)
"""How a curl line begins: after a prompt, and after variables that are set for it."""
_HERE = re.compile(r"<<-?[ \t]*(['\"]?)(\w+)\1([^\n]*)\n(.*?)\n[ \t]*\2[ \t]*(?:\n|$)", re.DOTALL)
_STANDARD_INPUT = ("@-", "@/dev/stdin")
_LETTERS = {"a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def from_curl(text: str) -> tuple[str, str]:
    """Return the address and the body of a curl line, as people type it or a browser copies it.

    Raises:
        ValueError: no body, one that lies in a file, or quotes that do not close.

    >>> from_curl("curl http://localhost:8000/v1/completions -H 'Authorization: Bearer x' -d '{\\"top_p\\": 0.9}'")
    ('http://localhost:8000/v1/completions', '{"top_p": 0.9}')
    """
    here = _HERE.search(text)
    if here is not None:  # a body that stands below the line: <<EOF
        text = text[: here.start()] + here[3] + text[here.end() :]
    joined = re.sub(r"[\\^`][ \t]*\r?\n", " ", text)  # a line goes on after \, in Windows after ^ or `
    if '^"' in joined:  # as browsers copy it for the command line of Windows, which takes each ^ away
        joined = re.sub(r"\^(.)", r"\1", joined)
    beginning = CURL.match(joined.strip())
    line = joined.strip()[beginning.end() if beginning else 0 :]
    try:
        words = iter(shlex.split(_QUOTED.sub(_plainly_quoted, line)))
    except ValueError:
        raise ValueError(OPEN_QUOTE) from None
    addresses: list[str] = []
    bodies: list[str] = []
    for word in words:
        name, value = _option(word)
        if not name:
            addresses.append(word)
        elif name in _DATA:
            bodies.append(next(words, "") if value is None else value)
        elif name == "--url":
            addresses.insert(0, next(words, "") if value is None else value)
        elif value is None and (name in _WITH_VALUE or name[1] in _SHORT_WITH_VALUE):
            next(words, "")
    if not bodies:
        raise ValueError(NO_BODY)
    if here is not None and bodies[0] in _STANDARD_INPUT:
        bodies[0] = here[4]
    if bodies[0].startswith("@"):
        raise ValueError(IN_A_FILE)
    return next((each for each in addresses if "://" in each), addresses[0] if addresses else ""), bodies[0]


def _option(word: str) -> tuple[str, str | None]:
    """Split a word into an option and the value joined to it; of short ones together, -sd, the one with a value."""
    if word.startswith("--"):
        name, has_value, value = word.partition("=")
        return name, value if has_value else None
    if not word.startswith("-"):
        return "", None
    for place, letter in enumerate(word[1:], 1):
        if letter in _SHORT_WITH_VALUE:
            return f"-{letter}", word[place + 1 :] or None
    return "-s", None  # none of them has a value


def _plainly_quoted(quoted: re.Match[str]) -> str:
    """Return $'...' of bash, which browsers copy, in quotes that shlex knows; others as they are."""
    inner = quoted["ansi"]
    return quoted[0] if inner is None else shlex.quote(_ESCAPE.sub(_unescaped, inner))


def _unescaped(escape: re.Match[str]) -> str:
    if escape["bytes"]:
        return bytes(int(each, 16) for each in escape["bytes"].split("\\x")[1:]).decode(errors="replace")
    if escape["code"]:
        return chr(int(escape["code"], 16))
    return _LETTERS.get(escape["letter"], escape["letter"])
