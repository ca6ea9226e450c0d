"""A GGUF file as a language model, with a converted copy of the weights in the user's cache for the next start."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from lmcore.checkpoints.converted_copy import ConvertedCopy
from lmcore.checkpoints.end_tokens import from_gguf
from lmcore.checkpoints.gguf_file import GGUFFile
from lmcore.checkpoints.gguf_models import read_model
from lmcore.checkpoints.gguf_tokenizer import tokenizer_from
from lmcore.checkpoints.heap import trim_heap
from lmcore.checkpoints.joined_file import JoinedFile
from lmcore.checkpoints.progress import Progress, silent
from lmcore.checkpoints.weights import build
from lmcore.language_model import LanguageModel


def load_gguf(
    parts: Sequence[Path],
    name: str,
    dtype: torch.dtype = torch.float32,
    said: Progress = silent,
    filename: str | None = None,
    sha256: str | None = None,
) -> LanguageModel:
    """Load a model from a GGUF file, or from the parts it was cut into.

    Args:
        parts: the file or its parts, in order.
        name: the model's name.
        dtype: the dtype of the weights.
        said: told what is being done and how far it is.
        filename: what errors call the file, where it is in parts.
        sha256: the digest that the whole must have.

    Raises:
        ValueError: for a file that is broken, of a kind not read, or not the one expected, naming file and field.
    """
    filename = filename or parts[0].name
    copy = ConvertedCopy(parts, dtype)
    model = copy.load(name, said)
    if model is None and sha256 is not None:
        digest = JoinedFile(parts).sha256(lambda share: said(f"checking {filename}", share))
        if digest != sha256:
            raise ValueError(f"{filename} is damaged: its SHA-256 is {digest}, not {sha256}. Install it again.")
    file = GGUFFile(parts, filename)
    config, tensors = read_model(file.metadata, file)
    said("reading the tokenizer", 0.0)
    tokenizer = tokenizer_from(file.metadata, filename)
    end_tokens = from_gguf(file.metadata, tokenizer.special_tokens)
    file.metadata.clear()  # a large vocabulary is not held twice while the weights come in
    trim_heap()
    if model is None:
        model = build(config, tensors, filename, dtype, lambda share: said(f"reading {filename}", share))
        copy.save(model, name, said)
    return LanguageModel(name, model, tokenizer, end_tokens)
