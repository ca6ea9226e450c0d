"""Score texts under a sampler's settings, and write a table with a row for each position.

MODEL is a built-in model's name, a folder or a GGUF file. The texts are one a line, or the column "text" of a .csv
file, or JSON strings or objects with "text", one a line, of a .jsonl file. The settings are lmcore's own, or those of
an engine: --engine llama.cpp. --compare scores the same texts under others, which are given as name=value and may name
an engine: --compare "engine=vllm temperature=0.7 top_p=0.8". The value "off" turns off what an engine has on.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import lmcore
from lmcore import builtin
from lmcore.analysis.logits.texts import read_file
from lmcore.analysis.sampling.texts import Summary, TextThrough, rows, through_texts
from lmcore.corpus.truth import Truth
from lmcore.language_model import LanguageModel
from lmcore.sampling import PRESETS, Field, Ids, SamplingSettings, preset
from lmcore.sampling.registry import all_fields

__all__ = ["as_arguments", "main"]

_OFF = "off"  # what turns a knob off on the command line


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, score the texts, write the table, and print a summary of each setting as JSON."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        settings = {"": _settings(given.engine, {n: v for n in all_fields() if (v := getattr(given, n)) is not None})}
        for others in given.compare:
            values = dict(pair.partition("=")[::2] for pair in others.split())
            settings[others] = _settings(values.pop("engine", "lmcore"), values)
        lines = read_file(given.text.name, given.text.read_bytes())
        lm = lmcore.load(given.model)
        truth = Truth(builtin.tokenizer()) if lm.name in builtin.names() else None
        found = [_told(text) for text in through_texts(lm, lines, list(settings.values()), truth)]
        if given.out is not None:
            _write(given.out, lm, found, list(settings))
    except (ValueError, OSError) as wrong:
        parser.error(str(wrong))
    scored = [text for text in found if text.tables]
    if not scored:
        parser.error(f"{given.text} holds no text that could be scored.")
    told = [
        _finite({"settings": repr(each), **asdict(Summary.of([text.tables[place] for text in scored]))})
        for place, each in enumerate(settings.values())
    ]
    print(json.dumps(told, ensure_ascii=False, indent=2))


def as_arguments(settings: SamplingSettings) -> str | None:
    """Return the options that give these settings, but for the seed; None where order or rules are no engine's own.

    >>> as_arguments(SamplingSettings(temperature=0.8, top_p=0.9))
    '--temperature=0.8 --top-p=0.9'
    >>> as_arguments(preset("ollama", top_k=None))
    '--engine=ollama --penalty-last-n=64 --temperature=0.8 --top-p=0.9 --top-k=off'
    """
    engine = settings.engine if settings.engine in PRESETS else "lmcore"
    told = {name: _as_text(value) for name, value in settings.values}
    if engine != "lmcore":
        defaults = (name for name in PRESETS[engine].defaults if name in all_fields())
        told.update({name: _OFF for name in defaults if name not in told})
    again = _settings(engine, told)
    if (again.values, again.order, again.rules) != (settings.values, settings.order, settings.rules):
        return None
    options = {**({} if engine == "lmcore" else {"engine": engine}), **told}
    return " ".join(f"--{name.replace('_', '-')}={text}" for name, text in options.items())


def _as_text(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(":".join(map(repr, each)) if isinstance(each, tuple) else repr(each) for each in value)
    return repr(value)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m lmcore.sampling",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--text", type=Path, required=True, metavar="FILE", help="the texts")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to write the table, as .csv or .jsonl")
    parser.add_argument("--engine", default="lmcore", choices=["lmcore", *PRESETS], help="whose rules and defaults")
    parser.add_argument("--compare", action="append", default=[], metavar="SETTINGS", help="other settings; repeatable")
    for name, field in all_fields().items():
        parser.add_argument(f"--{name.replace('_', '-')}", dest=name, metavar="VALUE", help=_help(field))
    return parser


def _help(field: Field) -> str:
    if field.name == "logit_bias":
        return "ID:NUMBER,ID:NUMBER ..., added to logits; -inf bans a token"
    return "ID,ID ..., token ids" if isinstance(field, Ids) else field.allowed.replace("%", "%%")


def _settings(engine: str, given: Mapping[str, str]) -> SamplingSettings:
    """Make settings of texts, in the words of the command line."""
    values = {name.replace("-", "_"): _value(name.replace("-", "_"), text) for name, text in given.items()}
    if engine == "lmcore":
        return SamplingSettings(**{n: all_fields()[n].off if v is None else v for n, v in values.items()})
    if engine not in PRESETS:
        raise ValueError(f"engine is {engine!r}; it must be lmcore or one of {', '.join(PRESETS)}.")
    return preset(engine, **values)


def _value(name: str, text: str) -> Any:
    field = all_fields().get(name)
    if field is None:
        raise ValueError(f"{name!r} is not a sampling setting; the settings are {', '.join(sorted(all_fields()))}.")
    if text == _OFF:
        return None
    try:
        if name == "logit_bias":
            return {int(token): float(amount) for token, _, amount in (p.partition(":") for p in text.split(","))}
        if isinstance(field, Ids):
            return [int(token) for token in text.split(",")]
        return int(text) if field.whole else float(text)
    except ValueError:
        wanted = _help(field) if isinstance(field, Ids) or name == "logit_bias" else field.allowed
        raise ValueError(f"{name} is {text!r}; it must be {wanted}.") from None


def _told(text: TextThrough) -> TextThrough:
    """Say on the other stream what was left out; the summary alone goes to the first."""
    if text.problem:
        print(f"line {text.line.number} was left out: {text.problem}", file=sys.stderr)
    return text


def _write(path: Path, lm: LanguageModel, found: Sequence[TextThrough], names: Sequence[str]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = rows(lm, found, names)
        if path.suffix.lower() == ".jsonl":
            file.writelines(json.dumps(_finite(row), ensure_ascii=False) + "\n" for row in table)
            return
        columns: dict[str, None] = {}
        kept = list(table)
        for row in kept:
            columns |= dict.fromkeys(row)
        writer = csv.DictWriter(file, list(columns))
        writer.writeheader()
        writer.writerows(kept)


def _finite(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as JSON can have it: what was removed has no surprisal, what is not known no distance."""
    return {name: None if isinstance(v, float) and not math.isfinite(v) else v for name, v in row.items()}
