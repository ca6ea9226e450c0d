"""Every string in the code has its translation, and the catalogues have no other."""

import ast
import re
import string
from collections import defaultdict

import pytest

from pages.locale.catalogues import ROOT, is_translated, po_files, read_catalogue, source_messages, translations
from pages.locale.languages import LANGUAGES

TRANSLATED = [code for code, language in LANGUAGES.items() if language.folder]


def catalogue_messages(language: str) -> dict:
    return {message.id: message for path in po_files(language) for message in read_catalogue(path) if message.id}


def text_of(message: str | tuple[str, ...]) -> str:
    return message if isinstance(message, str) else message[0]


def test_the_extraction_sees_the_code() -> None:
    sources = source_messages()
    assert "Tokenization" in sources["common"]
    assert ("This page needs at least {n} token.", "This page needs at least {n} tokens.") in sources["common"]


@pytest.mark.slow
@pytest.mark.parametrize("language", TRANSLATED)
def test_no_string_is_untranslated_or_fuzzy(language: str) -> None:
    known = catalogue_messages(language)
    wanted = set().union(*source_messages().values())
    assert [m for m in wanted if m not in known or not is_translated(known[m])] == []


@pytest.mark.parametrize("language", TRANSLATED)
def test_no_translation_is_stale(language: str) -> None:
    assert catalogue_messages(language).keys() - set().union(*source_messages().values()) == set()


@pytest.mark.parametrize("language", TRANSLATED)
def test_a_string_is_translated_alike_on_every_page(language: str) -> None:
    found = defaultdict(set)
    for path in po_files(language):
        for message in read_catalogue(path):
            if message.id:
                found[message.id].add(message.string)
    assert {text_of(key): texts for key, texts in found.items() if len(texts) > 1} == {}


@pytest.mark.parametrize("language", TRANSLATED)
def test_translations_fill_in_the_same_values(language: str) -> None:
    for key, message in catalogue_messages(language).items():
        forms = [message.string] if isinstance(message.string, str) else message.string
        for form in forms:
            assert set(re.findall(r"{[^}]*}", form)) == set(re.findall(r"{[^}]*}", text_of(key))), text_of(key)


def test_a_message_formatted_at_once_is_given_every_value_it_names() -> None:
    checked = 0
    for path in [ROOT / "app.py", *sorted(ROOT.glob("pages/**/*.py"))]:
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            match call:
                case ast.Call(ast.Attribute(ast.Call(ast.Name("_" | "ngettext"), messages), "format"), _, keywords):
                    given = {keyword.arg for keyword in keywords}
                    for message in messages:
                        if isinstance(message, ast.Constant) and isinstance(message.value, str) and None not in given:
                            named = {field for _, field, _, _ in string.Formatter().parse(message.value) if field}
                            assert named <= given, f"{path}:{call.lineno}: {message.value}"
                            checked += 1
    assert checked > 100


def test_lookup() -> None:
    chinese = translations("zh")
    assert chinese.gettext("Tokenization") == "分词"
    assert (chinese.gettext("{n} bits"), chinese.gettext("{n} nats")) == ("{n} 比特", "{n} 奈特")
    few = chinese.ngettext("This page needs at least {n} token.", "This page needs at least {n} tokens.", 2)
    assert few.format(n=2) == "此页至少需要 2 个词元。"
    assert translations("en").gettext("Tokenization") == "Tokenization"
