"""Bring the catalogues up to date with the code: `python -m pages.locale [domain ...]`.

New strings are added with an empty translation, strings the code no longer has are dropped, and what still
needs a translation is printed. Without arguments every domain is done.
"""

from __future__ import annotations

import sys

from babel.messages.catalog import Catalog
from babel.messages.pofile import write_po

from pages.locale.catalogues import FOLDER, is_translated, read_catalogue, source_messages
from pages.locale.languages import LANGUAGES

HEADER = r"""msgid ""
msgstr ""
"Language: {language}\n"
"Plural-Forms: {plurals}\n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=utf-8\n"
"Content-Transfer-Encoding: 8bit\n"

"""


def main(domains: list[str]) -> None:
    """Update the .po files of some domains, of all when none is named."""
    sources = source_messages()
    for code in (language.folder for language in LANGUAGES.values() if language.folder):
        for domain in domains or sorted(sources):
            path = FOLDER / code / "LC_MESSAGES" / f"{domain}.po"
            old = read_catalogue(path) if path.exists() else Catalog(locale=code)
            new = Catalog(locale=code)
            for key in sorted(sources.get(domain, set()), key=str):
                known = old.get(key[0] if isinstance(key, tuple) else key)
                new.add(key, known.string if known else "")
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                file.write(HEADER.format(language=code, plurals=new.plural_forms).encode("utf-8"))
                write_po(file, new, width=110, omit_header=True)
            for message in new:
                if message.id and not is_translated(message):
                    print(f"{domain}.po has no translation of {message.id!r}")


if __name__ == "__main__":
    main(sys.argv[1:])
