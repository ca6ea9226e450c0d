"""How text of users and models reaches the screen: visible, literal, harmless."""

from __future__ import annotations

import html
import re
import unicodedata

_MARKS = {" ": "␣", "\t": "⇥", "\n": "⏎", "\r": "␍"}
# Categories without a glyph of their own: controls, format (bidi, zero width), surrogates, private, unassigned,
# line and paragraph separators, and every space but the plain one.
_UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
# Invisible although their category says letter or mark: joiners, fillers, variation selectors.
_UNSEEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
_MAX_STACKED_MARKS = 2


def visible(text: bytes | str) -> str:
    """Show a token's text so that nothing in it is hidden.

    Space, tab, newline and carriage return become ␣ ⇥ ⏎ ␍; characters that cannot be seen become their code
    point; bytes that are not whole UTF-8 characters are shown in hexadecimal.

    Args:
        text: the text, or a token's bytes.

    Returns:
        Plain text for one line. It is not markup: pass it to `markdown_literal` or `plotly_literal` where needed.

    >>> visible(b" the"), visible(b"\\xe5\\xa4"), visible("a\\u202eb"), visible(bytes("天\\n", "utf-8")[1:])
    ('␣the', '⟨e5 a4⟩', 'a⟨U+202E⟩b', '⟨a4 a9⟩⏎')
    """
    if isinstance(text, str):
        return _visible_characters(text)
    shown, rest = "", text
    while rest:
        try:
            return shown + _visible_characters(rest.decode("utf-8"))
        except UnicodeDecodeError as error:
            end = error.end
            while end < len(rest) and 0x80 <= rest[end] < 0xC0:  # stray continuation bytes belong to the same gap
                end += 1
            shown += _visible_characters(rest[: error.start].decode("utf-8"))
            shown += f"⟨{rest[error.start : end].hex(' ')}⟩"
            rest = rest[end:]
    return shown


def _visible_characters(text: str) -> str:
    if text.isascii() and text.isprintable():  # most tokens, in a tenth of the time
        return text.replace(" ", _MARKS[" "])
    shown: list[str] = []
    stacked = 0
    for character in text:
        category = unicodedata.category(character)
        combining = category in ("Mn", "Me")
        unseen = category in _UNSEEN_CATEGORIES or _UNSEEN.match(character)
        if character in _MARKS:
            shown.append(_MARKS[character])
        elif unseen or (combining and stacked >= _MAX_STACKED_MARKS):
            shown.append(f"⟨U+{ord(character):04X}⟩")
        elif combining and (not shown or shown[-1] in _MARKS.values() or shown[-1].startswith("⟨")):
            shown.append("◌" + character)  # a combining mark needs something to sit on
        else:
            shown.append(character)
        stacked = stacked + 1 if combining else 0
    return "".join(shown)


def whole_characters(text: str) -> str:
    """Return a text that can be sent and encoded: halves of characters become U+FFFD.

    >>> whole_characters("a\\udbc0b") == "a\N{REPLACEMENT CHARACTER}b"
    True
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def readable(text: str) -> str:
    """Return a longer text as it is read: its lines and spaces as they are, what cannot be seen made visible.

    >>> readable("a b\\n\u200bc")
    'a b\\n⟨U+200B⟩c'
    """
    return "\n".join(visible(line).replace(_MARKS[" "], " ") for line in text.split("\n"))


def markdown_literal(text: bytes | str) -> str:
    """Return Markdown that shows `text` as it is, as a code span.

    A code span is the one construct inside which Streamlit leaves emphasis, links, LaTeX, directives (`:red[x]`),
    icons and arrows alone; backslashes and entities do not stop all of them. `:material/` alone is rewritten before
    Markdown is parsed, so a word joiner, which takes no room, keeps it apart.

    >>> markdown_literal("a`b"), markdown_literal("")
    ('`` a`b ``', '` `')
    """
    shown = visible(text).replace(":material/", ":\u2060material/")
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    padding = " " if not shown or "`" in (shown[0], shown[-1]) or longest else ""
    return f"{fence}{padding}{shown}{padding}{fence}" if shown else "` `"


def markup_literal(text: str) -> str:
    """Return `text` for HTML, between tags.

    >>> markup_literal("<b>&")
    '&lt;b&gt;&amp;'
    """
    return html.escape(text, quote=False)


def plotly_literal(text: str) -> str:
    """Return `text` for a plotly title, tick, name or hover, which take a part of HTML.

    Words of our own are passed as they are, tokens through `visible` first.

    >>> plotly_literal("<b>&"), plotly_literal(f"next to {visible(b' cat')}")
    ('&lt;b&gt;&amp;', 'next to ␣cat')
    """
    return markup_literal(text)
