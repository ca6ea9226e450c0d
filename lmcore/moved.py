"""Modules that have moved, under the names that older snippets import them by.

`from lmcore.analysis.pca import principal_components` goes on working: the old name is the same module object.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_BY_STAGE = {
    "blocks": ("attention", "interventions", "mlp", "residual", "summary"),
    "embedding": ("initial", "pca", "random_tables", "similarity", "tsne", "world_parts"),
    "generation": ("cache_comparison", "diversity"),
    "logits": ("attribution", "lens", "normaliser", "readout", "scoring", "texts"),
    "position": ("attention_distance", "length", "length_run", "rope_extension", "rope_meeting"),
    "tokenization": ("permutation",),
    "training": ("alignment", "embedding_gradient", "one_step"),
}

MOVED = {
    **{
        f"lmcore.analysis.{name}": f"lmcore.analysis.{stage}.{name}"
        for stage, names in _BY_STAGE.items()
        for name in names
    },
    "lmcore.analysis.embedding_history": "lmcore.analysis.embedding.history",
    "lmcore.analysis.position_measures": "lmcore.analysis.position.measures",
    "lmcore.analysis.tie_operations": "lmcore.analysis.tying.operations",
    "lmcore.analysis.token_search": "lmcore.tokenizer.token_search",
    "lmcore.engines.candidates": "lmcore.engines.top_tokens",
    "lmcore.engines.pieces": "lmcore.engines.drawing",
    "lmcore.engines.run": "lmcore.generation.engine_run",
    "lmcore.analysis.writing": "lmcore.tokenizer.writing",
    "lmcore.tokenizer.script": "lmcore.tokenizer.writing",
    "lmcore.checkpoints.vocabulary_files": "lmcore.loading.vocabulary_files",
}
"""Old name -> the module's name now. `lmcore.analysis.tying` is a package now that has what the module had."""


class _Moved(MetaPathFinder, Loader):
    """Finds a module under its old name by importing it under the one it has now."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for an old name only."""
        return ModuleSpec(fullname, self) if fullname in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        """Put the module of today in the place of the empty one that the import made."""
        sys.modules[module.__name__] = importlib.import_module(MOVED[module.__name__])


def find_moved_modules() -> None:
    """Let imports find the old names, after everything else was asked."""
    sys.meta_path.append(_Moved())
