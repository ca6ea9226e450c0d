"""Engines as their operator names them: a TOML file, and nothing a user can type."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lmcore.engines.errors import EngineError

FILE_VARIABLE = "GLASS_BOX_LM_ENGINES"
"""The environment variable that names the file."""


@dataclass(frozen=True)
class EngineConfig:
    """One engine.

    Attributes:
        name: what the explorer calls it.
        base_url: where its OpenAI-compatible interface is, such as "http://gpu-1:8000/v1"; never shown.
        model: the model's name there.
        key_variable: the environment variable its key is read from at each request; "" for an engine without a key.
        weights: a local model with the same weights, by the name `lmcore.load` knows; "" for none.
        vocab_size: the rows of its head, where the server does not tell; 0 to ask.
        timeout: seconds without a word from the server after which it counts as too slow.
    """

    name: str
    base_url: str = field(repr=False)
    model: str
    key_variable: str = ""
    weights: str = ""
    vocab_size: int = 0
    timeout: float = 60.0

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\w[\w .+()-]{0,59}", self.name):
            raise ValueError(f"name must be letters, digits, spaces and .+()-_, at most 60, got {self.name!r}.")
        address = urlsplit(self.base_url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ValueError('base_url must be an http or https address such as "http://127.0.0.1:8000/v1".')
        if address.username is not None or address.query or address.fragment:
            raise ValueError("base_url must not hold a name, a password or a query; a key comes from key_variable.")
        if not self.model:
            raise ValueError("model must be the name that the server knows the model by.")
        if self.vocab_size < 0:
            raise ValueError(f"vocab_size must be a number of tokens, or 0 to ask, got {self.vocab_size}.")
        if not self.timeout > 0:
            raise ValueError(f"timeout must be a positive number of seconds, got {self.timeout}.")

    def key(self) -> str:
        """Return the key from the environment; "" for an engine without one.

        Raises:
            EngineError: when the variable is not set.
        """
        if not self.key_variable:
            return ""
        key = os.environ.get(self.key_variable, "").strip()
        if not key or not key.isascii():
            raise EngineError("no key", f"{self.name}: the environment variable {self.key_variable} holds no key.")
        return key


def configured() -> tuple[EngineConfig, ...]:
    """Return the engines in the file that GLASS_BOX_LM_ENGINES names, in its order; none when it is not set.

    The file has one table an engine:

        [[engine]]
        name = "SmolLM2 on vLLM"
        base_url = "http://127.0.0.1:8000/v1"
        model = "smollm2"
        key_variable = "VLLM_KEY"
        weights = "smollm2-135m-instruct"

    Raises:
        ValueError: for a file that is missing or broken, naming the field.
    """
    given = os.environ.get(FILE_VARIABLE)
    return read(Path(given)) if given else ()


def read(path: Path) -> tuple[EngineConfig, ...]:
    """Return the engines of a file; see `configured`."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{FILE_VARIABLE}: {path.name} could not be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name} is not TOML: {error}.") from None
    tables = found.pop("engine", [])
    if found or not isinstance(tables, list):
        raise ValueError(f"{path.name} must hold [[engine]] tables only, got {', '.join(found) or 'engine'}.")
    engines = tuple(_engine(table, f"{path.name}, engine {number}") for number, table in enumerate(tables, start=1))
    names = [engine.name for engine in engines]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{path.name}: two engines are called {twice!r}.")
    return engines


def _engine(table: Mapping[str, Any], where: str) -> EngineConfig:
    known = {each.name: each.type for each in fields(EngineConfig)}
    kinds: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "float": (int, float)}
    for name, value in table.items():
        if name not in known:
            raise ValueError(f"{where}: no field is called {name!r}; there are {', '.join(known)}.")
        if not isinstance(value, kinds[str(known[name])]) or isinstance(value, bool):
            raise ValueError(f"{where}: {name} must be of the type {known[name]}.")  # its value may be a secret
    missing = [name for name in ("name", "base_url", "model") if name not in table]
    if missing:
        raise ValueError(f"{where}: {missing[0]} is missing.")
    try:
        return EngineConfig(**table)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
