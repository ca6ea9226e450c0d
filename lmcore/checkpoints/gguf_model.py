"""A GGUF file as a language model, with a converted copy of the weights in the user's cache for the next start."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from lmcore.checkpoints.chat_templates import template_from_gguf
from lmcore.checkpoints.converted_copy import ConvertedCopy
from lmcore.checkpoints.end_tokens import from_gguf
from lmcore.checkpoints.gguf_file import GGUFFile, SplitGGUF, open_gguf
from lmcore.checkpoints.gguf_models import read_model
from lmcore.checkpoints.gguf_tokenizer import names_no_splitting, tokenizer_from
from lmcore.checkpoints.heap import trim_heap
from lmcore.checkpoints.joined_file import JoinedFile
from lmcore.checkpoints.own_sampling import from_gguf as own_sampling
from lmcore.checkpoints.progress import Doing, Progress, silent
from lmcore.checkpoints.tensor_source import storage
from lmcore.checkpoints.weights import build
from lmcore.language_model import LanguageModel
from lmcore.model import Model
from lmcore.model_card import ModelCard
from lmcore.tokenizer import PretrainedTokenizer

_SOURCES = (
    *("general.source.repo_url", "general.source.url", "general.repo_url", "general.url"),
    *("general.base_model.0.repo_url", "general.source.huggingface.repository"),
)


def load_gguf(
    parts: Sequence[Path],
    name: str,
    dtype: torch.dtype = torch.float32,
    said: Progress = silent,
    filename: str | None = None,
    sha256: str | None = None,
) -> LanguageModel:
    """Load a model from a GGUF file, or from the pieces it was cut into, or the files it was split into.

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

    def kept() -> Model | None:
        model = copy.load(name, said)
        if model is None and sha256 is not None:
            digest = JoinedFile(parts).sha256(lambda share: said(Doing.CHECKING_FILE, share))
            if digest != sha256:
                raise ValueError(f"{filename} is damaged: its SHA-256 is {digest}, not {sha256}. Install it again.")
        return model

    file = open_gguf(parts, filename)
    config, tensors, unknown = read_model(file.metadata, file)
    said(Doing.READING_TOKENIZER, 0.0)
    with ThreadPoolExecutor(1) as beside:  # hashing leaves Python to the tokenizer's lists
        checked = beside.submit(kept)
        tokenizer = tokenizer_from(file.metadata, filename)
        model = checked.result()
    end_tokens = from_gguf(file.metadata, tokenizer.special_tokens)
    chat_template = template_from_gguf(file.metadata, tokenizer.special_tokens, filename)
    card = _card(file, filename, tokenizer, unknown)
    file.metadata.clear()  # a large vocabulary is not held twice while the weights come in
    trim_heap()
    if model is None:
        model = build(config, tensors, filename, dtype, lambda share: said(Doing.READING_WEIGHTS, share))
        copy.save(model, name, said)
    return LanguageModel(name, model, tokenizer, end_tokens, card, chat_template)


def _card(
    file: GGUFFile | SplitGGUF, filename: str, tokenizer: PretrainedTokenizer, unknown: Mapping[str, Any]
) -> ModelCard:
    """Return what the file says of the model."""
    sampling = own_sampling(file.metadata)
    said = {key: str(file.metadata.get(f"general.{key}", "")) for key in ("name", "architecture", "license")}
    return ModelCard(
        title=said["name"],
        family=said["architecture"],
        filename=filename,
        licence=said["license"],
        source=next((str(file.metadata[key]) for key in _SOURCES if file.metadata.get(key)), ""),
        storage=storage((t.kind.name, math.prod(t.shape), t.nbytes) for t in file.stored.values()),
        unknown_fields=unknown,
        without_row=tokenizer.without_row,
        sampling=sampling,
        sampling_file="general.sampling" if sampling else "",
        default_splitting=names_no_splitting(file.metadata),
    )
