"""The live parts' scripts: what one imports, the other exports."""

import posixpath
import re

from pages.live.part import scripts


def test_every_import_names_a_script_and_something_it_exports() -> None:
    for path, content in scripts().items():
        for names, source in re.findall(r'^import \{([^}]*)\} from "([^"]+)";', content.decode(), re.MULTILINE):
            target = scripts()[posixpath.normpath(posixpath.join(posixpath.dirname(path), source))].decode()
            for name in filter(None, map(str.strip, names.split(","))):
                exported = rf"^export (const|function\*?|class) {name}\b|^export {{[^}}]*\b{name}\b"
                assert re.search(exported, target, re.MULTILINE), (path, name)
