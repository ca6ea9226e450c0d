"""Who may import whom, read from the imports themselves."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# The floors of lmcore from the ground up: a part may import those below it, and every part stands on one.
FLOORS = [
    {
        "config",
        "scores",
        "distribution",
        "tokenizer",
        "worker",
        "cores",
        "memory",
        "linear",
        "model_card",
        "moved",
        "quantisation",
    },
    {"derived"},
    {"trace"},
    {"sampling", "corpus", "chat", "norm", "embedding", "position", "kv_cache", "parameters"},
    {"attention", "mlp", "engines", "requests", "constraints"},
    {"experts"},
    {"block"},
    {"model"},
    {"language_model"},
    {"checkpoints", "generation"},
    {"builtin"},
    {"loading"},
    {"analysis"},
    {"compare"},
    {"training"},
    {"quantise"},
]
PURE = {"distribution", "sampling"}


def imported(path: Path) -> set[str]:
    """Return the modules a file imports, at the top or inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def part_of(module: str) -> str:
    """Return the part of lmcore a module belongs to: lmcore.sampling.draw -> sampling."""
    return module.split(".")[1] if module.startswith("lmcore.") else ""


def files_of(part: str) -> list[Path]:
    """Return a part's modules; a program, which is started and never imported, may use what stands above it."""
    folder = ROOT / "lmcore" / part
    modules = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
    return [path for path in modules if path.name != "__main__.py"]


@pytest.mark.parametrize("path", sorted((ROOT / "lmcore").rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_lmcore_imports_neither_the_screen_nor_the_reference(path):
    banned = {"streamlit", "plotly", "transformers", "pages", "app", "playwright"}
    assert not {module.split(".")[0] for module in imported(path)} & banned


def parts() -> set[str]:
    """Return the names of lmcore's modules and packages."""
    return {
        path.stem for path in (ROOT / "lmcore").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }


def test_every_part_has_its_floor():
    assert set().union(*FLOORS) == parts() - {"__init__"}


@pytest.mark.parametrize("part", sorted(set().union(*FLOORS)))
def test_a_part_imports_those_below_it_only(part):
    height = next(height for height, floor in enumerate(FLOORS) if part in floor)
    below = set().union(*FLOORS[:height])
    for path in files_of(part):
        used = {part_of(module) for module in imported(path)} & parts()
        assert used <= below | {part}, f"{path} imports {used - below - {part}}"


def test_sampling_never_imports_the_model():
    for part in PURE:
        for path in files_of(part):
            assert {part_of(module) for module in imported(path)} <= PURE | {""}, path


def test_importing_lmcore_loads_nothing_heavy():
    code = "import sys, lmcore; print(sorted({'streamlit', 'plotly', 'transformers', 'pandas'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
