"""What the reader has chosen on the blocks page, handed to its sections."""

from __future__ import annotations

from dataclasses import dataclass

from lmcore import Encoding, LanguageModel, ModelConfig, Trace
from pages.figures.labels import token_labels


@dataclass(frozen=True)
class Chosen:
    """The traced pass and the place in it."""

    lm: LanguageModel
    found: Encoding
    trace: Trace
    layer: int
    head: int
    position: int

    @property
    def config(self) -> ModelConfig:
        """The model's config."""
        return self.lm.config

    @property
    def labels(self) -> list[str]:
        """A label for each position."""
        return token_labels(self.found.tokens)

    def snippet(self, lines: str) -> str:
        """Return code that runs this very pass, followed by some lines."""
        return (
            "import lmcore\n"
            f"lm = lmcore.load({self.lm.name!r})\n"
            f"ids = lm.tokenizer.encode({self.found.text!r}).ids\n"
            "trace = lmcore.Trace()\n"
            f"lm(ids, trace=trace)\n{lines}"
        )
