"""The log-probabilities of the text in view, as each engine would report them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from lmcore import LanguageModel
from lmcore.analysis.sampling.reported import LogProbs, of_result
from lmcore.generation.run import GenerationRun
from lmcore.generation.tree import Node
from lmcore.sampling import PRESETS, History
from pages.common import page
from pages.common.text import _, visible
from pages.figures.generation.curves import log_probs_along
from pages.stages.generation import jobs
from pages.stages.generation.buttons import nothing_yet
from pages.stages.sampling import knobs

CODE = """
import lmcore
from lmcore.analysis.sampling.reported import log_probs

lm = lmcore.load({name!r})
prompt, generated = {prompt}, {generated}
settings = lmcore.SamplingSettings({settings})
logits = lm([*prompt, *generated])
for n, token in enumerate(generated):
    history = lmcore.History(prompt, generated[:n])
    print(log_probs(logits[len(prompt) + n - 1], token, settings, history))
"""

KINDS = ("raw", "edited", "heated", "final")


@dataclass(frozen=True)
class _Found:
    """What is known of the tokens so far, and of how many there will be."""

    measured: tuple[LogProbs, ...]
    total: int


def show(lm: LanguageModel, run: GenerationRun) -> None:
    """Draw the view."""
    path = run.tree.path(run.node)
    if not path:
        return nothing_yet()
    controls, picture = page.workbench()
    question = (lm.name, run.tree.prompt_ids, tuple((step.token_id, step.settings, step.by_hand) for step in path))
    with controls:
        jobs.button(
            "reported",
            question,
            _("Measure the tokens"),
            lambda: _measure(run, path),
            at_once=lm.config.vocab_size <= 5_000,
        )
        st.caption(
            _(
                "Engines report different numbers as “logprobs”: of the model itself, after the temperature, or after "
                "all filters."
            )
        )
    with picture:
        if jobs.find("reported", question) is None:
            st.info(_("Press the button. The distribution each token was drawn from is made again."))
        jobs.show(
            "reported",
            question,
            lambda found: len(found.measured) / found.total,
            lambda found, _all: _draw(path, found),
        )
    page.snippet(_code(lm, run, path))


def _code(lm: LanguageModel, run: GenerationRun, path: Sequence[Node]) -> str:
    settings = path[-1].settings
    given = {} if settings is None else knobs.given(settings)
    return CODE.format(
        name=lm.name,
        prompt=list(run.tree.prompt_ids),
        generated=[step.token_id for step in path],
        settings=", ".join(f"{name}={value!r}" for name, value in given.items()),
    ).strip("\n")


def _measure(run: GenerationRun, path: Sequence[Node]) -> Iterator[_Found]:
    """Measure each token; several are looked at in one pass of the model."""
    measured: list[LogProbs] = []
    far = max(run.tree.farthest_look, 1)
    for begin in range(0, len(path), far):
        part = path[begin : begin + far]
        parent = part[0].parent
        assert parent is not None  # the root is no part of a path
        run.tree.look_ahead(parent, [step.token_id for step in part[:-1]])
        for step in part:
            generated = [before.token_id for before in path[: len(measured)]]
            measured.append(of_result(run.result(step), step.token_id, History(run.tree.prompt_ids, generated)))
        yield _Found(tuple(measured), len(path))


def titles() -> dict[str, str]:
    """Return what each kind of log-probability is called."""
    return {
        "raw": _("the model's own"),
        "edited": _("after bias and penalties"),
        "heated": _("after the temperature too"),
        "final": _("after every stage"),
        "": _("not documented"),
    }


def _draw(path: Sequence[Node], found: _Found) -> None:
    labels = [visible(step.token) for step in path[: len(found.measured)]]
    shown = titles()
    values = {kind: [getattr(each, kind) for each in found.measured] for kind in KINDS}
    page.figure(
        log_probs_along(
            labels,
            {shown[kind]: values[kind] for kind in ("raw", "heated", "final")},
            x_title=_("step"),
            y_title=_("ln P (nats)"),
        ),
        "reported-chart",
        _("Lines: ln P of each token under the model itself, after the temperature, and after every stage."),
    )
    st.table(_engines(values))
    page.numbers_table(
        pd.DataFrame(
            {
                _("step"): range(1, len(labels) + 1),
                _("token"): labels,
                **{shown[kind]: values[kind] for kind in KINDS},
                _("kept by the filters"): [each.kept for each in found.measured],
            }
        ),
        "reported",
        {**dict.fromkeys([shown[kind] for kind in KINDS], "logit"), _("kept by the filters"): "probability"},
    )
    st.caption(
        _(
            "Filters divide what they keep by the share they keep. Where the temperature comes before them, the last "
            "column of ln P is the one before it less ln of that share."
        )
    )


def _engines(values: dict[str, list[float]]) -> pd.DataFrame:
    """Return a row for each kind: its sum over this text, and which engines report it under which name."""
    rows = []
    for kind, name in titles().items():
        engines = [
            f"{preset.title} ({called})"
            for preset in PRESETS.values()
            for called, reported in preset.reports.items()
            if reported == kind
        ]
        total = math.fsum(values[kind]) if kind else math.nan
        rows.append(
            {
                _("ln P"): name,
                _("Sum over this text (nats)"): f"{total:.3f}" if math.isfinite(total) else "–",
                _("Reported by"): "; ".join(engines),
            }
        )
    return pd.DataFrame(rows).set_index(_("ln P"))
