"""Vocabularies by name, read without the weights they belong to."""

from __future__ import annotations

import json
import os
import random
from functools import lru_cache
from pathlib import Path

from lmcore import builtin
from lmcore.chat.template import ChatTemplate
from lmcore.checkpoints.chat_templates import template_from_folder, template_from_gguf
from lmcore.checkpoints.packaged import PACKAGED
from lmcore.checkpoints.split_files import all_parts
from lmcore.corpus import small_world
from lmcore.loading.models import FOLDER_VARIABLE
from lmcore.tokenizer import PretrainedTokenizer, Tokenizer
from lmcore.tokenizer.unigram import scored
from lmcore.tokenizer.vocabularies import Bytes, Characters, OfLibrary, OfTokenizer, Vocabulary

BUILTIN, CHARACTERS, BYTES, SCORED = "small-world", "characters", "bytes", "small-world-scored"
_SAMPLE_CHARACTERS = 60_000


def available_vocabularies() -> dict[str, bool]:
    """Return the names that `load_vocabulary` knows and whether each is installed.

    The built-in models', characters, bytes, the built-in models' pieces with scores (a Unigram), those of the models
    that come as packages, and what the directory holds that GLASS_BOX_LM_MODELS names: GGUF files, files *.json, and
    folders with a tokenizer.json.
    """
    always = dict.fromkeys((BUILTIN, CHARACTERS, BYTES, SCORED), True)
    return always | {model.name: model.installed for model in PACKAGED.values()} | dict.fromkeys(_listed(), True)


def load_vocabulary(name: str) -> Vocabulary:
    """Return a vocabulary by name.

    A tokenizer.json that is not read exactly, because it normalises or knows no bytes, is read as the `tokenizers`
    library reads it.

    Raises:
        ValueError: for a name that is not known, or a file that is missing or broken.
    """
    if name in (CHARACTERS, BYTES):
        return Characters() if name == CHARACTERS else Bytes()
    if name == SCORED:
        return OfLibrary(scored(builtin.tokenizer(), sample_text(_SAMPLE_CHARACTERS)))
    path = _listed().get(name)
    if path is None or path.suffix == ".gguf":
        return OfTokenizer(load_tokenizer(name))
    try:
        return OfTokenizer(PretrainedTokenizer.from_file(path))
    except ValueError:
        return OfLibrary.from_file(path)


def scored_vocabularies() -> list[str]:
    """Return the names of the vocabularies whose pieces have scores: Unigram files, and the built-in pieces."""
    return [SCORED, *(name for name, path in _listed().items() if _is_scored(path, path.stat().st_mtime_ns))]


@lru_cache(maxsize=64)
def _is_scored(path: Path, _changed: int) -> bool:
    if path.suffix != ".json":
        return False
    try:
        return json.loads(path.read_bytes())["model"]["type"] == "Unigram"
    except (ValueError, KeyError, TypeError):
        return False


def sample_text(n: int) -> str:
    """Return at least n characters of the world that the built-in models learned from; the same at every call."""
    rng, text = random.Random(0), ""
    while len(text) < n:
        text += small_world().sample_document(rng)
    return text


def load_tokenizer(name: str) -> Tokenizer:
    """Return the tokenizer of a model by its name, without loading its weights.

    Raises:
        ValueError: for a name that is not known, or a file that is missing or broken.
    """
    return load_chat(name)[0]


def load_chat(name: str) -> tuple[Tokenizer, ChatTemplate | None]:
    """Return the tokenizer and the chat template of a model by its name, without loading its weights.

    Raises:
        ValueError: for a name that is not known, or a file that is missing or broken.
    """
    if name in builtin.names():
        return builtin.tokenizer(), None
    path = _listed().get(name)
    if name in PACKAGED:
        return _of_gguf(PACKAGED[name].paths, PACKAGED[name].filename)
    if path is None:
        raise ValueError(f"no vocabulary is called {name!r}; choose one of {', '.join(available_vocabularies())}.")
    if path.suffix == ".gguf":
        return _of_gguf(all_parts(path), path.name)
    tokenizer = PretrainedTokenizer.from_file(path)
    folder = path.parent if path.name == "tokenizer.json" else None
    return tokenizer, template_from_folder(folder, tokenizer.special_tokens) if folder else None


def _of_gguf(parts: list[Path], filename: str) -> tuple[PretrainedTokenizer, ChatTemplate | None]:
    from lmcore.checkpoints.gguf_file import open_gguf  # needs the gguf package, which takes time to import
    from lmcore.checkpoints.gguf_tokenizer import tokenizer_from

    metadata = open_gguf(parts, filename).metadata
    tokenizer = tokenizer_from(metadata, filename)
    return tokenizer, template_from_gguf(metadata, tokenizer.special_tokens, filename)


def _listed() -> dict[str, Path]:
    """The vocabularies in the directory that the environment names, by the name of the file or of its folder."""
    folder = Path(os.environ.get(FOLDER_VARIABLE) or os.devnull)
    if not folder.is_dir():
        return {}
    files = {path.name: path for path in sorted([*folder.glob("*.json"), *folder.glob("*.gguf")])}
    return files | {path.parent.name: path for path in sorted(folder.glob("*/tokenizer.json"))}
