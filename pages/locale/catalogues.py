"""Read the .po files: no build step, so what is in the repository is what is on screen.

A language's catalogue is spread over domains: one .po file for each page with its figures (`blocks.po`), one for
each live part, one for what all pages show in front of an engine (`engines.po`), and `common.po` for the rest. They
are looked up as one.
"""

from __future__ import annotations

import gettext
import io
from collections import defaultdict
from functools import cache
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_file
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

from lmcore import requests
from lmcore.chat import findings
from lmcore.compare import texts as compare_texts
from lmcore.sampling import registry
from pages.locale.languages import LANGUAGES

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent.parent
MessageId = str | tuple[str, ...]


@cache
def translations(language: str) -> gettext.NullTranslations:
    """Return the translations of a language, by its code; English is what the code says."""
    folder = LANGUAGES[language].folder
    if folder is None:
        return gettext.NullTranslations()
    merged = Catalog(locale=folder)
    for path in po_files(language):
        for message in read_catalogue(path):
            if message.id and not message.fuzzy:
                merged[message.id] = message
    compiled = io.BytesIO()
    write_mo(compiled, merged)
    compiled.seek(0)
    return gettext.GNUTranslations(compiled)


def po_files(language: str) -> list[Path]:
    """Return the .po files of a language, sorted by domain."""
    return sorted((FOLDER / str(LANGUAGES[language].folder) / "LC_MESSAGES").glob("*.po"))


def read_catalogue(path: Path) -> Catalog:
    """Read one .po file."""
    with path.open("rb") as file:
        return read_po(file)


def source_messages() -> dict[str, set[MessageId]]:
    """Return the strings marked for translation in the code, by domain; `common`'s are left out of the others."""
    found: dict[str, set[MessageId]] = defaultdict(set)
    for path in [ROOT / "app.py", *sorted(ROOT.glob("pages/**/*.py"))]:
        for _line, message, _comments, _context in extract_from_file("python", path, {"_": None, "ngettext": (1, 2)}):
            found[_domain(path)].add(message[:2] if isinstance(message, tuple) else message)
    found["sampling_lab"] |= registry.texts()  # the stages say their titles themselves
    found["tokenization"] |= findings.texts()
    found["sampling"] |= requests.texts()
    found["compare"] |= compare_texts()
    return {name: messages if name == "common" else messages - found["common"] for name, messages in found.items()}


def is_translated(message: Message) -> bool:
    """Whether a message has every one of its forms and is not marked fuzzy."""
    forms = message.string if isinstance(message.string, (tuple, list)) else (message.string,)
    return all(forms) and not message.fuzzy


def _domain(path: Path) -> str:
    """Return the domain of a source file: the name of its page or live part, `engines`, or `common`."""
    if path.stem == "engine" or path.stem.startswith("engine_") or path == ROOT / "pages" / "common" / "engines.py":
        return "engines"
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[:2] in {("pages", "lessons"), ("pages", "classes")}:
        return {"lessons": "lessons", "classes": "classroom"}[parts[1]]
    return parts[2] if parts[1:2] in {("stages",), ("figures",), ("live",)} and len(parts) > 2 else "common"
