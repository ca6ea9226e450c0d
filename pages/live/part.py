"""How a part gets into the page: its folder's script, style and markup as one component."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import streamlit as st

_LIVE = Path(__file__).parent


@st.cache_resource(show_spinner=False)
def part(name: str, html: str = "", modules: Sequence[str] = ()):  # noqa: ANN201 - streamlit does not name the type
    """Return the component of `<name>.js` with the style `<name>.css`, to be mounted with a key and data.

    Args:
        name: the folder and its script, which are called alike ("token_strip"), or both ("sampling_lab/lab").
        html: the markup; `<name>.html` when left out.
        modules: scripts of the folder that the last one imports from, each after those it imports from itself.
    """
    folder, _, stem = name.rpartition("/")
    stem = _LIVE / (folder or stem) / stem
    return st.components.v2.component(
        f"explorer_{name.replace('/', '_')}",
        js=joined(stem.parent, [*modules, f"{stem.name}.js"]),
        css=_read(stem.with_suffix(".css")),
        html=html or _read(stem.with_suffix(".html")),
    )


def joined(folder: Path, files: Sequence[str]) -> str:
    """Return scripts as one ES module: what they import from each other is then simply there."""
    scripts = "\n".join((folder / file).read_text(encoding="utf-8") for file in files)
    return re.sub(r"^export (?!default)|^import .*\n", "", scripts, flags=re.MULTILINE)


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None
