"""Who may import what, and where state and caches live."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(ROOT.glob("pages/**/*.py"))


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("path", sorted(ROOT.glob("pages/figures/**/*.py")), ids=lambda path: path.name)
def test_figures_know_no_streamlit(path: Path) -> None:
    allowed_of_pages = {"pages.common.escape"}
    for name in imports(path):
        assert not name.startswith("streamlit")
        assert not name.startswith("pages.") or name in allowed_of_pages or name.startswith("pages.figures")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_text_is_escaped_in_one_place(path: Path) -> None:
    assert path == ROOT / "pages/common/escape.py" or not {"html", "markupsafe"} & imports(path)


@pytest.mark.parametrize("path", [ROOT / "app.py", *PAGES], ids=lambda path: str(path.relative_to(ROOT)))
def test_the_app_imports_nothing_that_is_for_tests(path: Path) -> None:
    banned = {"transformers", "scipy", "playwright", "hypothesis", "pytest", "tests"}
    assert not {name.split(".")[0] for name in imports(path)} & banned


STAGES = sorted(ROOT.glob("pages/stages/**/*.py"))


@pytest.mark.parametrize("path", STAGES, ids=lambda path: "/".join(path.parts[-2:]))
def test_pages_leave_caches_and_stopping_to_what_they_share(path: Path) -> None:
    code = path.read_text(encoding="utf-8")
    assert not re.search(r"st\.(stop|switch_page)\b", code)
    assert "unsafe_allow" not in code


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_one_file_caches_and_one_takes_private_names(path: Path) -> None:
    code = path.read_text(encoding="utf-8")
    assert path.name == "shared.py" or not re.search(r"st\.cache_(data|resource)\b", code)
    public = {"streamlit.delta_generator"}
    private = {name for name in imports(path) if re.match(r"streamlit\.|plotly\.basedatatypes", name)} - public
    assert path.name == "streamlit_private.py" or not private


def test_no_script_lies_directly_in_pages() -> None:
    assert [path.name for path in ROOT.glob("pages/*.py")] == ["__init__.py"]


def test_inner_html_is_never_written() -> None:
    for path in ROOT.glob("pages/live/**/*.js"):
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write", path.read_text("utf-8")), path
