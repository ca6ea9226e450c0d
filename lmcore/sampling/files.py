"""Stages of your own, from Python files: each is imported and tried, and what cannot be used is said in a sentence."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import torch

from lmcore.sampling.chain import reshape
from lmcore.sampling.registry import all_stages, register, unregister
from lmcore.sampling.settings import SamplingSettings
from lmcore.sampling.stage import Field, History, Note, Stage

__all__ = ["StageFile", "load_stages", "try_stage"]

_KINDS = ("edit", "temperature", "filter")
_SIZE = 512  # tokens, of the vocabulary that a stage is tried on


@dataclass(frozen=True)
class StageFile:
    """What became of a file.

    Attributes:
        path: The file, or what was given where there is no file.
        stages: The stages it registered; none where there is a problem.
        problem: Why it was left out, in a sentence; "" for a file that is in use.
        error: The error behind the problem, with its traceback.
    """

    path: Path
    stages: tuple[Stage, ...] = ()
    problem: str = ""
    error: BaseException | None = None


def load_stages(path: Path, reserved: Collection[str] = ()) -> tuple[StageFile, ...]:
    """Import a file, or every file `*.py` of a folder by name, and keep the stages that they register.

    A file with a mistake registers nothing, and the others are read all the same. The files run as code: give only
    what you trust.

    Args:
        path: The file or the folder.
        reserved: Names that no stage and no field may have, besides those that `register` refuses.

    Returns:
        A record for each file.
    """
    if not path.exists():
        return (StageFile(path, problem="there is no such file or folder."),)
    files = sorted(path.glob("*.py")) if path.is_dir() else [path]
    if not files:
        return (StageFile(path, problem="the folder has no Python file."),)
    return tuple(_load(file, reserved) for file in files)


def _load(path: Path, reserved: Collection[str]) -> StageFile:
    before = {stage.name: stage for stage in all_stages()}
    try:
        _import(path)
        stages = _registered_since(before)
        if not stages:
            raise ValueError("it registers no stage: call lmcore.sampling.register(...) in it.")
        for stage in stages:
            if stage.name in before:
                raise ValueError(f"a stage named {stage.name!r} was registered before; give this one another name.")
            for name in (stage.name, *(field.name for field in stage.fields)):
                if name in reserved:
                    raise ValueError(f"{name!r} has another meaning here; give the stage or field another name.")
            try_stage(stage)
    except (Exception, SystemExit) as error:
        for stage in _registered_since(before):
            unregister(stage.name)
            if stage.name in before:
                register(before[stage.name])
        problem = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
        return StageFile(path, problem=problem, error=error)
    return StageFile(path, stages)


def _import(path: Path) -> None:
    name = f"stages_of_your_own_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError("it is no Python file: its name must end in .py.")
    sys.modules[name] = module = importlib.util.module_from_spec(spec)  # dataclasses and pickles look it up there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


def _registered_since(before: dict[str, Stage]) -> tuple[Stage, ...]:
    return tuple(stage for stage in all_stages() if before.get(stage.name) is not stage)


def try_stage(stage: Stage) -> None:
    """Check a registered stage as a page uses it: its texts, each field's numbers, and one run with it switched on.

    Raises:
        ValueError: naming the stage and what is wrong.
    """
    where = f"the stage {stage.name!r}"
    if not all(isinstance(text, str) and text.strip() for text in (stage.title, stage.help)):
        raise ValueError(f"{where} needs a title and a help, each a text.")
    if stage.kind not in _KINDS:
        raise ValueError(f"{where} has the kind {stage.kind!r}; it must be one of {', '.join(_KINDS)}.")
    for field in stage.fields:
        _check_numbers(field, where)
    names = [field.name for field in stage.fields]
    if stage.switches and not {names[0]} <= {*stage.switches} <= {*names}:
        raise ValueError(f"{where}: switches must name its first field, {names[0]!r}, and others of its own only.")
    first = stage.fields[0]
    if first.on is None or first.check(first.on) == first.off:
        raise ValueError(f"{where}: the field {first.name!r} needs a value `on` that is not its off value.")
    logits = torch.linspace(-4, 4, _SIZE)[torch.randperm(_SIZE, generator=torch.Generator().manual_seed(0))]
    try:
        result = reshape(logits, SamplingSettings(**{first.name: first.on}), History(prompt=(1, 2), generated=(3,)))
        total = result.probs.sum().item()
        if not all(isinstance(step.note, Note) for step in result.steps):
            raise TypeError("a remark must be a lmcore.sampling.Note")
        if len(result.probs) == _SIZE and abs(total - 1) < 1e-6:
            result.next_state(int(result.probs.argmax()))
            return
    except Exception as error:
        message = f"{where} failed when it was tried with {first.name} = {first.on!r}: {type(error).__name__}: {error}"
        raise ValueError(message) from error
    raise ValueError(f"{where}, tried with {first.name} = {first.on!r}, leaves probabilities that sum to {total:g}.")


def _check_numbers(field: Field, where: str) -> None:
    """Check that the off value, the value `on` and every stop of a slider are numbers the field takes."""
    stops = list(field.stops(_SIZE))
    for value in (field.off, *([] if field.on is None else [field.on]), *stops):
        try:
            field.check(value)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
    off = 0 if field.off is None else field.off
    if stops and off not in stops:
        raise ValueError(f"{where}: the stops of {field.name!r} must include {off!r}, which is off.")
