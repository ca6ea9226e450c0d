"""Models in several files, model-00001-of-00003.gguf and so on: finding the others, and saying which is missing."""

from __future__ import annotations

import re
from pathlib import Path

_NUMBERED = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})")


def split_stem(path: Path) -> str:
    """Return a file's stem without the number of a part.

    >>> split_stem(Path("qwen-00002-of-00003.gguf")), split_stem(Path("qwen.gguf"))
    ('qwen', 'qwen')
    """
    found = _NUMBERED.fullmatch(path.stem)
    return found["stem"] if found else path.stem


def all_parts(path: Path) -> list[Path]:
    """Return all files of the model that a file is a part of, in order; the file alone where it is a whole.

    Raises:
        ValueError: when a part is missing, naming it.
    """
    found = _NUMBERED.fullmatch(path.stem)
    if not found:
        return [path]
    count = int(found["count"])
    parts = [path.with_name(f"{found['stem']}-{i:05}-of-{count:05}{path.suffix}") for i in range(1, count + 1)]
    if missing := [part.name for part in parts if not part.is_file()]:
        raise ValueError(
            f"{path.name} is one of {count} parts of a model, and {' and '.join(missing[:3])} "
            f"{'is' if len(missing) == 1 else 'are'} missing beside it; all parts belong in one folder."
        )
    return parts


def gguf_of(folder: Path) -> list[Path]:
    """Return the parts of the one model that a folder holds as GGUF; an empty list when it holds none.

    Raises:
        ValueError: when it holds several, or a part is missing.
    """
    models = {split_stem(path): path for path in sorted(folder.glob("*.gguf"))}
    models = {stem: path for stem, path in models.items() if not stem.startswith("mmproj")}  # a part that sees pictures
    if len(models) > 1:
        raise ValueError(f"{folder.name} holds several models, {', '.join(sorted(models))}; give the path of one file.")
    return all_parts(next(iter(models.values()))) if models else []
