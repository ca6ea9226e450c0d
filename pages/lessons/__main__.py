"""Check lesson files in a terminal: `python -m pages.lessons check FILE ...`.

Each is read, every page's address is looked at, and every question is measured. What is wrong is printed, in Chinese
with `--lang zh`; the exit status is 1 when something is.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import lmcore
from pages.common import text
from pages.lessons.checking import problems_of_file
from pages.locale.languages import LANGUAGES


def main(arguments: list[str]) -> int:
    """Check the files; return the exit status."""
    parser = argparse.ArgumentParser("python -m pages.lessons", description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["check"])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--lang", choices=LANGUAGES, default="en")
    given = parser.parse_args(arguments)
    text.outside_a_session.set(given.lang)
    found = [
        problem for path in given.files for problem in problems_of_file(path, lmcore.load, lmcore.available()[0].name)
    ]
    print("\n".join(found) or text._("Nothing is wrong."))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
