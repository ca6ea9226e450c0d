"""The fields of a question being written: what is measured with its arguments, and when a choice is right."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Mapping
from typing import Any

import streamlit as st

from pages.common import session
from pages.common.text import _, language
from pages.lessons.lesson import COMPARED
from pages.lessons.measures import KINDS, MEASURES
from pages.lessons.misconceptions import misconceptions
from pages.lessons.toml import as_toml

SIDES = ("input", "output")
_NONE = "–"


def told() -> dict[str, str]:
    """Return what each measure is, in the reader's language."""
    return {
        "tokens": _("how many tokens the prompt has"),
        "likeliest": _("the most probable next token"),
        "probability": _("the probability of a token as the next one"),
        "rank": _("the rank of a token among all next tokens"),
        "candidates": _("how many tokens can still be drawn (the size of the kept set)"),
        "kept": _("the probability of the kept set at temperature 1"),
        "entropy": _("the entropy of the next token"),
        "loss": _("the mean loss of the prompt; with the token at one position changed"),
        "loss_after_step": _("the loss after one step of gradient descent"),
        "rows_moved": _("how many rows of the table get a gradient"),
        "gradient_cosine": _("the cosine of the table's two gradients"),
        "cosine": _("the cosine of two tokens' embedding rows"),
        "nearest": _("which token, among some, is nearest to a token"),
        "state_cosine": _("the cosine of the hidden states in two texts, after some blocks"),
        "distance": _("the total variation distance of the next token to that after another text"),
        "divergence": _("the KL divergence of the next token from that after another text, or of another model"),
        "attention": _("how much attention a position gives to a position or a token"),
        "lens": _("the probability of a token, read after some blocks"),
        "lens_likeliest": _("the most probable token, read after some blocks"),
        "generated": _("the text that is generated with a seed"),
        "different": _("how many different tokens are generated with a seed"),
        "drawn": _("how often a token comes in some draws with a seed"),
        "parameters": _("how many parameters a model, or a part of it, has"),
    }


def measure(given: Mapping[str, Any] | None, key: str, title: str) -> dict[str, Any]:
    """Show what is measured and its arguments as fields; return the table, empty when nothing is.

    Args:
        given: the table so far.
        key: of the fields.
        title: what it is for.
    """
    given = given or {}
    names = list(MEASURES)
    name = st.selectbox(
        title,
        names,
        index=names.index(given["name"]) if given.get("name") in names else None,
        format_func=lambda name: f"{told()[name]} ({name})",
        placeholder=_("nothing"),
        key=f"{key}.name",
    )
    if name is None:
        return {}
    found: dict[str, Any] = {"name": name}
    with st.container(horizontal=True):
        for argument, parameter in list(inspect.signature(MEASURES[name]).parameters.items())[2:]:
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                others = {k: v for k, v in given.items() if k not in _known(name)}
                found = _settings(others, f"{key}.{name}.settings") | found
            else:
                value = _field(argument, str(parameter.annotation), given.get(argument), f"{key}.{name}.{argument}")
                if value is not None:
                    found[argument] = value
        if prompt := st.text_input(_("another prompt"), str(given.get("prompt", "")), key=f"{key}.prompt", width=220):
            found["prompt"] = prompt
        if (model := _model(_("another model"), given.get("model"), f"{key}.model")) is not None:
            found["model"] = model
    return found


def choice(given: Mapping[str, Any], key: str, name: str | None, *, compared: bool, text: str) -> dict[str, Any]:
    """Show one choice: its text, when it is right, and what somebody may believe who takes it.

    Args:
        given: the table so far.
        key: of the fields.
        name: of the measure, None when none is chosen yet.
        compared: whether there is a second measure.
        text: of the choice in the reader's language.
    """
    kinds = {"is": _("the answer is"), "range": _("the answer is between")}
    kinds |= {each: _compared()[each] for each in COMPARED} if compared else {}
    when = given.get("when", "")
    known = "range" if isinstance(when, Mapping) else when if isinstance(when, str) and when in kinds else "is"
    said, kind, value, belief = st.columns([4, 2, 2, 3], gap="small")
    found: dict[str, Any] = {"text": said.text_input(_("choice"), text, key=f"{key}.text")}
    chosen = kind.selectbox(
        _("is right when"), list(kinds), list(kinds).index(known), format_func=kinds.__getitem__, key=f"{key}.kind"
    )
    with value:
        if chosen == "range":
            ends = when if isinstance(when, Mapping) else {}
            low, high = st.columns(2, gap="small")
            least = low.number_input(_("at least"), value=_float(ends.get("at_least")), key=f"{key}.low", format="%g")
            most = high.number_input(_("below"), value=_float(ends.get("less_than")), key=f"{key}.high", format="%g")
            found["when"] = {
                end: _whole(each) for end, each in (("at_least", least), ("less_than", most)) if each is not None
            }
        elif chosen == "is":
            answer = "" if isinstance(when, Mapping) or when in COMPARED else str(when)
            typed = st.text_input(_("answer"), answer, key=f"{key}.answer")
            is_text = name is not None and KINDS[name] in ("token", "text")
            found["when"] = typed if is_text else _number(typed)
        else:
            found["when"] = chosen
    names = [_NONE, *misconceptions()]
    believed = given.get("misconception", _NONE)
    told = {_NONE: _NONE} | {each: misconceptions()[each].belief.in_language(language()) for each in names[1:]}
    taken = belief.selectbox(
        _("misconception"),
        names,
        names.index(believed) if believed in names else 0,
        format_func=told.__getitem__,
        key=f"{key}.misconception",
    )
    return found if taken == _NONE else found | {"misconception": taken}


def _compared() -> dict[str, str]:
    return {
        "above": _("it is larger"),
        "below": _("it is smaller"),
        "same": _("both are the same"),
        "different": _("they differ"),
    }


def _known(name: str) -> set[str]:
    return {"name", "prompt", "model", *inspect.signature(MEASURES[name]).parameters}


def _field(name: str, annotation: str, value: Any, key: str) -> Any:
    """Show an argument by what it is; None leaves it out."""
    if "LanguageModel" in annotation:
        return _model(name, value, key)
    if annotation.startswith("Literal"):
        return st.selectbox(name, SIDES, SIDES.index(value) if value in SIDES else 0, key=key, width=140)
    if "bool" in annotation:
        options = [None, True, False]
        told = {None: _NONE, True: _("yes"), False: _("no")}
        at = options.index(value) if value in (True, False) else 0
        return st.selectbox(name, options, at, format_func=told.__getitem__, key=key, width=140)
    if annotation.startswith("Sequence"):
        typed = st.text_input(
            name,
            ", ".join(map(str, value)) if isinstance(value, list) else "",
            key=key,
            help=_("separated by commas"),
            width=220,
        )
        return [part.strip(" ") for part in typed.split(",") if part.strip()] or None
    if "str" in annotation:
        typed = st.text_input(name, "" if value is None else str(value), key=key, width=160)
        return None if not typed else _number(typed) if "int" in annotation else typed
    number = st.number_input(
        name, value=_float(value), key=key, width=140, format="%g", step=1.0 if "int" in annotation else 0.1
    )
    return None if number is None else _whole(number)


def _settings(given: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Show settings of the sampler as they stand in a file."""
    lines = as_toml(given).strip().splitlines()
    typed = st.text_input(
        _("sampler settings"), ", ".join(lines), key=key, placeholder="temperature = 0.5, top_k = 40", width=300
    )
    try:
        return tomllib.loads(f"all = {{ {typed} }}")["all"]
    except (tomllib.TOMLDecodeError, RecursionError):
        st.caption(_("These are no settings; write `temperature = 0.5, top_k = 40`."))
        return {}


def _model(title: str, value: object, key: str) -> str | None:
    names = [name for name, model in session.available_models().items() if model.installed]
    at = names.index(value) if value in names else None
    return st.selectbox(title, names, at, placeholder=_NONE, key=key, width=200)


def _float(value: object) -> float | None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not abs(value) < 2**53:  # nor inf, nor nan
        return None
    return float(value)


def _whole(number: float) -> int | float:
    return int(number) if number == int(number) and abs(number) < 2**53 else number


def _number(typed: str) -> int | float | str:
    try:
        return _whole(float(typed))
    except (ValueError, OverflowError):
        return typed
