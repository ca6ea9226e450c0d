"""Every stage there is, in the default order, and those that a reader adds."""

from __future__ import annotations

from collections.abc import Mapping
from keyword import iskeyword
from typing import Any

from lmcore.sampling.stage import Field, Stage
from lmcore.sampling.stages import BUILT_IN

__all__ = ["NOTES", "OFF", "STAGES", "all_fields", "all_stages", "get", "register", "texts", "unregister"]

_STAGES: dict[str, Stage] = {each.name: each for each in BUILT_IN}

STAGES: tuple[str, ...] = tuple(_STAGES)
"""The stages that come with lmcore, in the default order; `all_stages()` has the registered ones too."""

OFF: dict[str, Any] = {field.name: field.off for each in BUILT_IN for field in each.fields}
"""Field -> the value it has when nobody sets it, of the stages that come with lmcore."""

NOTES: tuple[str, ...] = tuple(dict.fromkeys(note for each in BUILT_IN for note in each.notes))
"""Every template a step's note is made from."""

_FIELDS: dict[str, Field] = {}  # asked for with every setting that is read: put together once
_RESERVED = {"seed", "order", "rules", "engine", "ignored", "values", "active", "as_dict"}


def all_stages() -> tuple[Stage, ...]:
    """Return every stage in the default order; those registered come last."""
    return tuple(_STAGES.values())


def get(name: str) -> Stage:
    """Return a stage by its name.

    Raises:
        KeyError: there is none.
    """
    return _STAGES[name]


def all_fields() -> Mapping[str, Field]:
    """Return every field of every stage, by name."""
    if not _FIELDS:
        _FIELDS.update({field.name: field for each in _STAGES.values() for field in each.fields})
    return _FIELDS


def texts() -> set[str]:
    """Return every text of lmcore's own stages that a page may show and translate."""
    shown = {text for each in BUILT_IN for text in (each.title, each.help, *each.notes)}
    return shown | {field.title for each in BUILT_IN for field in each.fields if field.title}


def register(new: Stage) -> Stage:
    """Add a stage of your own: settings take its fields, presets leave it out, the lab shows it.

    It runs last unless `order` says otherwise. A stage registered again under its name takes the old one's place.

    Args:
        new: Its declaration.

    Returns:
        The same stage.

    Raises:
        ValueError: a name that is taken by lmcore's own stages or settings, or is no identifier; no field.

    >>> from lmcore.sampling import Field, Range, SamplingSettings, reshape
    >>> def keep_even(tokens, context):
    ...     return tokens.keep_where(tokens.token_ids % 2 == 0)
    >>> even = register(Stage(
    ...     name="even", title="Even ids", help="Keeps even ids.", kind="filter", formula="id % 2 = 0", source="here",
    ...     fields=(Field(name="even", range=Range(0, 1), on=1.0),), run=keep_even))
    >>> reshape([0.0, 0.0, 0.0, 0.0], SamplingSettings(even=1)).kept_ids.tolist()
    [0, 2]
    >>> unregister("even")
    """
    if not new.fields:
        raise ValueError(f"the stage {new.name!r} has no field; it needs one to be switched on with.")
    if new.name in STAGES:
        raise ValueError(f"{new.name!r} is a stage of lmcore; give yours another name.")
    others = {field.name for each in _STAGES.values() if each.name != new.name for field in each.fields}
    for name in (new.name, *(field.name for field in new.fields)):
        if not name.isidentifier() or not name.isascii() or iskeyword(name) or name.startswith("_"):
            raise ValueError(
                f"{name!r} is no name for a stage or a field; use letters, digits and _, a letter first, and no word "
                "of Python's own."
            )
        if name in others | _RESERVED:
            raise ValueError(f"{name!r} is a setting already; give the field another name.")
    _STAGES[new.name] = new
    _FIELDS.clear()
    return new


def unregister(name: str) -> None:
    """Take a registered stage away again.

    Raises:
        ValueError: lmcore's own stages stay.
    """
    if name in STAGES or name not in _STAGES:
        raise ValueError(f"{name!r} is not a stage that was registered.")
    del _STAGES[name]
    _FIELDS.clear()
