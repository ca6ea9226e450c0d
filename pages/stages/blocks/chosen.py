"""What the reader has chosen, handed to the sections of a page."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from lmcore import Encoding, LanguageModel, ModelConfig, Trace
from pages.figures.labels import token_labels


def block_of(name: str) -> dict[str, int]:
    """Return the block that a tensor belongs to, as the value that a page's widgets have; nothing for one outside.

    >>> block_of("blocks.3.resid_mid"), block_of("hidden_state")
    ({'layer': 3}, {})
    """
    parts = name.split(".")
    return {"layer": int(parts[1])} if parts[0] == "blocks" else {}


@dataclass(frozen=True)
class TextPosition:
    """A position in a text under a model."""

    lm: LanguageModel
    found: Encoding
    position: int

    @property
    def config(self) -> ModelConfig:
        """The model's config."""
        return self.lm.config

    @cached_property
    def labels(self) -> list[str]:
        """A label for each position."""
        return token_labels(self.found.tokens)

    def snippet(self, lines: str, imports: str = ".analysis") -> str:
        """Return code that runs this pass, followed by some lines."""
        return (
            f"import lmcore{imports}\n"
            f"lm = lmcore.load({self.lm.name!r})\n"
            f"ids = lm.tokenizer.encode({self.found.text!r}).ids\n"
            "trace = lmcore.Trace()\n"
            f"logits = lm(ids, trace=trace)    # [{len(self.found.ids)}, {self.config.vocab_size}]\n"
            f"{lines}"
        )


@dataclass(frozen=True)
class Chosen(TextPosition):
    """The traced pass and the place in it."""

    trace: Trace
    layer: int
    head: int
