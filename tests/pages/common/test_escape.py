"""What `visible` promises: nothing hidden, nothing lost, one line."""

import re
import unicodedata
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.common.escape import markdown_literal, plotly_literal, visible
from tests.pages.hostile import TEXTS

SPOOFS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b\u200c\u200d\u2060\ufeff\u00ad\u061c\ufe0f\u3164"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (b" the", "␣the"),
        (b"\xe5\xa4", "⟨e5 a4⟩"),
        (b"\xa9x", "⟨a9⟩x"),
        (b"\xff\xfe", "⟨ff⟩⟨fe⟩"),
        ("今天\t天气\n".encode(), "今天⇥天气⏎"),
        (b"\xe4\xbb\x8a\xe5", "今⟨e5⟩"),
        ("😊".encode()[:3], "⟨f0 9f 98⟩"),
        ("\u0301a", "◌\u0301a"),
        ("e\u0301", "e\u0301"),
        ("\0", "⟨U+0000⟩"),
        ("", ""),
    ],
)
def test_examples(given: bytes | str, shown: str) -> None:
    assert visible(given) == shown


@given(st.text())
def test_nothing_stays_unseen(text: str) -> None:
    for character in visible(text):
        assert unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"}
        assert character not in SPOOFS


@given(st.binary())
def test_every_byte_is_accounted_for(data: bytes) -> None:
    back = b""
    for part in re.findall(r"⟨[0-9a-f ]+⟩|⟨U\+[0-9A-F]+⟩|[^⟨]|⟨", visible(data).replace("◌", "")):
        if part.startswith("⟨U+"):
            back += chr(int(part[3:-1], 16)).encode("utf-8", "surrogatepass")
        elif part.startswith("⟨") and len(part) > 1:
            back += bytes.fromhex(part[1:-1])
        else:
            back += {"␣": " ", "⇥": "\t", "⏎": "\n", "␍": "\r"}.get(part, part).encode()
    assert back == data.replace("◌".encode(), b"")


@pytest.mark.parametrize("text", TEXTS)
def test_markdown_literal_is_one_code_span_that_its_text_cannot_close(text: str) -> None:
    span = markdown_literal(text)
    fence = re.match("`+", span).group()
    inner = span[len(fence) : -len(fence)]
    assert span.endswith(fence) and "\n" not in span
    assert fence not in re.findall("`+", inner)
    assert inner.strip().replace("\u2060", "") == visible(text).strip()


@given(st.text())
def test_plotly_literal_has_no_markup(text: str) -> None:
    literal = plotly_literal(text)
    assert "<" not in literal and ">" not in literal
    assert unescape(literal) == text
