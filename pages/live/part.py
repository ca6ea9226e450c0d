"""How a part gets into the page: its folder's script, style and markup as one component."""

from __future__ import annotations

import hashlib
import importlib
from functools import cache
from pathlib import Path

import streamlit as st

from pages.common.shared import shared

LIVE = Path(__file__).parent


@shared()
def part(name: str, html: str = ""):  # noqa: ANN201 - streamlit does not name the type
    """Return the component of `<name>.js` with the style `<name>.css`, to be mounted with a key and data.

    The scripts are ES modules as they lie in the folder; the browser gets each from the server, and what it imports.

    Args:
        name: the folder and its script, which are called alike ("token_strip"), or both ("sampling_lab/lab").
        html: the markup; `<name>.html` when left out.
    """
    folder, _, stem = name.rpartition("/")
    script = LIVE / (folder or stem) / f"{stem}.js"
    return st.components.v2.component(
        f"explorer_{name.replace('/', '_')}",
        # Streamlit runs a component's script from a blob, which has no address that an import could be relative to.
        js=f"const part = await import(new URL('{address(script)}', document.baseURI));\nexport default part.default;",
        css=_read(script.with_suffix(".css")),
        html=html or _read(script.with_suffix(".html")),
    )


def address(script: Path) -> str:
    """Return the path a script is served at; it changes with the scripts, so that a browser may keep what it has."""
    base = st.get_option("server.baseUrlPath").strip("/")
    return f"/{base}/live/{version()}/{script.relative_to(LIVE).as_posix()}".replace("//", "/")


@cache
def scripts() -> dict[str, bytes]:
    """Return every script by its path below this folder, with those that a part's generated.py writes."""
    found = {path.relative_to(LIVE).as_posix(): path.read_bytes() for path in sorted(LIVE.rglob("*.js"))}
    for path in sorted(LIVE.glob("*/generated.py")):
        written = importlib.import_module(f"pages.live.{path.parent.name}.generated").scripts()
        found |= {f"{path.parent.name}/{name}": text.encode() for name, text in written.items()}
    return found


@cache
def version() -> str:
    """Return what names the scripts as they are now: the beginning of a hash of them all."""
    return hashlib.sha256(b"\0".join(scripts().values())).hexdigest()[:12]


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None
