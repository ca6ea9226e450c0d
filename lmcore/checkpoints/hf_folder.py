"""A model folder in Hugging Face's layout: config.json, safetensors and tokenizer.json."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from lmcore.checkpoints.chat_templates import template_from_folder
from lmcore.checkpoints.end_tokens import from_configs
from lmcore.checkpoints.families import FAMILIES
from lmcore.checkpoints.families.declaration import Family
from lmcore.checkpoints.fields import Fields
from lmcore.checkpoints.heap import trim_heap
from lmcore.checkpoints.hf_fields import CHANGES_NUMBERS, HARMLESS
from lmcore.checkpoints.mxfp4 import Mxfp4, names_mxfp4
from lmcore.checkpoints.names import Names, Renamed
from lmcore.checkpoints.own_sampling import from_generation_config
from lmcore.checkpoints.progress import Doing, Progress, silent
from lmcore.checkpoints.safetensors_files import SafetensorsFiles
from lmcore.checkpoints.small_files import read_json, read_text
from lmcore.checkpoints.split_files import all_parts
from lmcore.checkpoints.weights import build
from lmcore.config import ModelConfig
from lmcore.language_model import LanguageModel
from lmcore.model_card import ModelCard
from lmcore.tokenizer import PretrainedTokenizer

_HEAD = re.compile(r"---\n(.*?)\n---", re.DOTALL)
_LINE = re.compile(r"^(license|license_name|base_model):[ \t]*(?:\[[ \t]*|\n[ \t]*-[ \t]*)?([^\s\],]+)", re.MULTILINE)
_LONGEST = 200  # characters of a line of a README
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")


def load_folder(folder: Path, name: str, dtype: torch.dtype = torch.float32, said: Progress = silent) -> LanguageModel:
    """Load a model from its folder.

    Raises:
        ValueError: for a file that is missing, broken, of an unknown family or unlike the others, naming it.
    """
    config, family, unknown = read_config(folder / "config.json")
    tokenizer = _read_tokenizer(folder, config)
    trim_heap()
    files = Mxfp4(SafetensorsFiles(_weight_files(folder)))
    config = _tied_as_stored(config, files, family.names)
    source = Renamed(files, family.names, config)
    model = build(config, source, source.filename, dtype, lambda share: said(Doing.READING_WEIGHTS, share))
    values = read_json(folder / "config.json")
    generation = folder / "generation_config.json"
    sampling = from_generation_config(read_json(generation)) if generation.is_file() else {}
    licence, origin = _from_readme(folder / "README.md")
    card = ModelCard(
        title=str(values.get("_name_or_path") or ""),
        licence=licence,
        source=origin,
        family=str(values["model_type"]),
        filename=files.filename,
        storage=files.storage(),
        unknown_fields=unknown,
        without_row=tokenizer.without_row,
        sampling=sampling,
        sampling_file=generation.name if sampling else "",
    )
    chat_template = template_from_folder(folder, tokenizer.special_tokens)
    return LanguageModel(name, model, tokenizer, _end_tokens(folder, config), card, chat_template)


def _from_readme(path: Path) -> tuple[str, str]:
    """Return the licence and the source that the table at the head of a hub's README.md names, "" for neither."""
    try:
        head = _HEAD.match(read_text(path)) if path.is_file() else None
    except ValueError:  # nobody needs it
        head = None
    said = dict(_LINE.findall(head[1])) if head else {}
    licence, source = said.get("license_name") or said.get("license", ""), said.get("base_model", "")
    return licence.strip("'\"")[:_LONGEST], source.strip("'\"")[:_LONGEST]


def read_config(path: Path) -> tuple[ModelConfig, Family, dict[str, Any]]:
    """Return the config that a config.json describes, its family, and the fields that nobody knows.

    Raises:
        ValueError: for a family that is not read, or a field that would change the numbers, naming file and field.
    """
    values = read_json(path)
    kind = values.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise ValueError(f"{path.name}: model_type = {kind!r} is not supported; {', '.join(FAMILIES)} are.")
    family = FAMILIES[kind]
    if names_mxfp4(values):  # the tensors show it as well
        values = {name: value for name, value in values.items() if name != "quantization_config"}
    fields = Fields(values, CHANGES_NUMBERS, (*HARMLESS, *family.harmless))
    try:
        return family.config_from(fields), family, fields.finish()
    except (ValueError, TypeError, AttributeError) as error:  # a field of another type than it should have
        raise ValueError(f"{path.name}: {error}") from None


def _tied_as_stored(config: ModelConfig, files: Mxfp4, names: Names) -> ModelConfig:
    """Return the config, untied where the files hold a head with numbers of its own; transformers decides so too.

    Raises:
        ValueError: for such a head of another shape than the embedding.
    """
    apart = Renamed(files, names, replace(config, tie_embeddings=False))
    head, table = (apart.shapes().get(f"{part}.weight") for part in ("head", "token_embedding"))
    if not config.tie_embeddings or head is None or table is None:
        return config
    if head != table:
        raise ValueError(
            f"{files.filename}: the config ties head and embedding, but the file's own head has shape {list(head)}, "
            f"its embedding {list(table)}."
        )
    if files.equal(apart.origin("head.weight"), apart.origin("token_embedding.weight")):
        return config
    return replace(config, tie_embeddings=False)


def _end_tokens(folder: Path, config: ModelConfig) -> tuple[int, ...]:
    paths = (folder / name for name in ("generation_config.json", "config.json"))
    return from_configs((read_json(path) for path in paths if path.is_file()), config.vocab_size)


def _read_tokenizer(folder: Path, config: ModelConfig) -> PretrainedTokenizer:
    """Read tokenizer.json, which also says what every text begins with.

    Beside it, add_bos_token of tokenizer_config.json decides nothing; so does transformers, since version 5.
    """
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise ValueError(f"{path.name} is missing; only tokenizers in that form are read.")
    return PretrainedTokenizer.from_file(path, config.vocab_size)


def _weight_files(folder: Path) -> list[Path]:
    """The folder's safetensors files: one, or the shards that an index names."""
    single, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if single.is_file():
        return [single]
    if index.is_file():
        named = read_json(index).get("weight_map")
        if not isinstance(named, dict) or not named:
            raise ValueError(f"{index.name}: weight_map must be a table of tensors and files, got {named!r:.60}.")
        for shard in set(named.values()):
            if not isinstance(shard, str) or Path(shard).name != shard:
                raise ValueError(f"{index.name}: weight_map names {shard!r}, which is no file of this folder.")
        return [folder / shard for shard in sorted(set(named.values()))]
    if pickles := sorted(path.name for pattern in _PICKLES for path in folder.glob(pattern)):
        raise ValueError(
            f"{folder.name} holds its weights only as a pickle, {pickles[0]}; a pickle can run any code and is never "
            "opened. Convert it to safetensors."
        )
    if numbered := sorted(folder.glob("*-of-*.safetensors")):  # shards whose index was left behind
        return all_parts(numbered[0])
    raise ValueError(f"{folder.name} has no model.safetensors.")
