"""The chat template that a model's files hold."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmcore.chat.template import ChatTemplate
from lmcore.checkpoints.small_files import read_json, read_text

_KEY = "tokenizer.chat_template"


def template_from_gguf(
    metadata: Mapping[str, Any], special_tokens: Mapping[str, int], filename: str = ""
) -> ChatTemplate | None:
    """Return the template of a GGUF file: `tokenizer.chat_template`, and named ones `tokenizer.chat_template.NAME`.

    >>> template_from_gguf({"tokenizer.chat_template": "{{ bos_token }}", "tokenizer.ggml.bos_token_id": 1,
    ...                     "tokenizer.ggml.tokens": ["a", "<s>"]}, {"<s>": 1}).variables
    {'bos_token': '<s>'}
    """
    named = {key.removeprefix(f"{_KEY}."): str(text) for key, text in metadata.items() if key.startswith(f"{_KEY}.")}
    tokens = metadata.get("tokenizer.ggml.tokens") or ()
    names = {"bos": "bos", "eos": "eos", "unknown": "unk", "seperator": "sep", "padding": "pad"}  # as the format spells
    variables = {}
    for theirs, ours in names.items():
        token_id = metadata.get(f"tokenizer.ggml.{theirs}_token_id")
        if isinstance(token_id, int) and 0 <= token_id < len(tokens):
            variables[f"{ours}_token"] = str(tokens[token_id])
    return _template(metadata.get(_KEY), named, variables, special_tokens, filename)


def template_from_folder(folder: Path, special_tokens: Mapping[str, int]) -> ChatTemplate | None:
    """Return the template of a folder: chat_template.jinja and those in additional_chat_templates, else what
    tokenizer_config.json has, one or a list of named ones.

    Raises:
        ValueError: a file that cannot be read.
    """
    config, filename = _fields(folder / "tokenizer_config.json"), "tokenizer_config.json"
    given = config.get("chat_template")
    if not given and (path := folder / "chat_template.json").is_file():
        given, filename = read_json(path).get("chat_template"), path.name
    named: dict[str, str] = {}
    if isinstance(given, list):
        entries = [entry for entry in given if isinstance(entry, dict) and {"name", "template"} <= entry.keys()]
        named = {str(entry["name"]): str(entry["template"]) for entry in entries}
        given = named.pop("default", None)
    if (path := folder / "chat_template.jinja").is_file():
        given, filename, named = read_text(path), path.name, {}
    for path in sorted((folder / "additional_chat_templates").glob("*.jinja")):
        named[path.stem] = read_text(path)
    variables = {}
    for name, value in config.items():
        text = value.get("content") if isinstance(value, dict) else value
        if name.endswith("_token") and isinstance(text, str):
            variables[name] = text
    return _template(given, named, variables, special_tokens, filename)


def _template(
    given: object, named: dict[str, str], variables: dict[str, str], special_tokens: Mapping[str, int], filename: str
) -> ChatTemplate | None:
    if not isinstance(given, str) or not given:
        if not named:
            return None
        given = next(iter(named.values()))  # a model with named templates alone
    return ChatTemplate(given, variables, named, tuple(special_tokens), filename)


def _fields(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}
