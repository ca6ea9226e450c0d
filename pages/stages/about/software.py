"""What runs here: models with their licences, packages with their versions."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

from lmcore.loading import AvailableModel
from pages.common import session
from pages.common.text import _

_PACKAGES = ("glass-box-lm", "streamlit", "torch", "numpy", "plotly", "pandas", "tokenizers", "safetensors", "gguf")


def models() -> list[tuple[str, str, str]]:
    """Return each model's name, its licence, and whether it is installed."""
    return [
        (f"`{model.name}`", model.licence or _("part of this project, trained on its own grammar"), _here(model))
        if not model.description.startswith("from ")
        else (f"`{model.name}`", _("see the files that came with it"), _here(model))
        for model in session.available_models().values()
    ]


def _here(model: AvailableModel) -> str:
    return _("installed") if model.installed else _("not installed")


def versions() -> list[tuple[str, str]]:
    """Return the versions of Python and of the packages that the numbers depend on."""
    found = [("Python", platform.python_version())]
    for name in _PACKAGES:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:  # run from a folder that was not installed
            continue
    return found
