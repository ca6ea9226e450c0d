"""A training under way, drawn again and again: how far it is, its loss, its next token, its words."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import streamlit as st
import torch

from lmcore.distribution import top, total_variation
from lmcore.training.background import Progress
from lmcore.training.trial import TrialSettings
from pages.common import page
from pages.common.text import _, language, markdown_literal, visible
from pages.figures import theme
from pages.figures.training import live as figures
from pages.stages.training import learned
from pages.stages.training.run import Reading, TrainingRun, least_loss

_LOSS_COLOURS = (theme.CATEGORICAL[5], theme.CATEGORICAL[0], theme.CATEGORICAL[1])
_FOLLOWED = 5  # next tokens drawn over time


def show(run: TrainingRun, was_alive: bool) -> None:
    """Draw how far the training is; runs by itself again and again until it has ended."""
    progress = run.training.progress
    _status(run, progress)
    if progress.measurements:
        _losses(run, progress)
        _next_token(run, progress)
        learned.show(run, progress)
    if was_alive and not progress.alive:
        st.rerun()  # the whole page, once: the buttons and the table change


def before(settings: TrialSettings, reading: Reading) -> None:
    """Draw between what bounds the loss of a training that has not begun will fall."""
    try:
        vocab_size = reading.tokenizer().vocab_size
    except ValueError:
        return  # Start says what is wrong with the text
    ends = [0, settings.steps]
    bounds = {_("uniform: ln V"): (ends, [math.log(vocab_size)] * 2)}
    if reading.own is None:
        bounds[_("the grammar itself")] = (ends, [least_loss()] * 2)
    st.vega_lite_chart(
        figures.long_table({(name, ""): points for name, points in bounds.items()}),
        figures.lines(
            list(bounds),
            [""],
            last_step=settings.steps,
            x_title=_("step"),
            y_title=_("loss (nats per token)"),
            colours=("#8A8F98", _LOSS_COLOURS[2]),
        ),
        key="training-before",
        alt=_("The loss of a model that holds every token equally likely, and that of the grammar itself."),
    )


def _status(run: TrainingRun, progress: Progress) -> None:
    done, total = len(progress.steps), run.settings.steps
    told = {
        "waiting": _(
            "Waiting: the maximum number of trainings on this server are running. Yours starts when one ends."
        ),
        "running": _("Training"),
        "paused": _("Paused"),
        "finished": _("Finished"),
        "stopped": _("Stopped"),
        "failed": _("It failed"),
    }[progress.state]
    st.progress(done / total, text=_("{state} · step {done} of {total}").format(state=told, done=done, total=total))
    page.failure(progress.error)
    if not progress.measurements:
        return
    latest = progress.measurements[-1][1]
    loss, perplexity, floor, rate = st.columns(4)
    loss.metric(_("Held-out loss (nats)"), f"{latest.loss:.3f}")
    perplexity.metric(_("Perplexity"), f"{np.exp(latest.loss):.2f}")
    if run.floor is not None:
        floor.metric(_("Loss of the grammar itself"), f"{run.floor:.3f}")
    rate.metric(_("Learning rate now"), f"{progress.steps[-1].learning_rate:.2g}" if progress.steps else "0")


def _losses(run: TrainingRun, progress: Progress) -> None:
    steps = [step.step + 1 for step in progress.steps]
    measured = [done for done, _value in progress.measurements]
    data = {
        _("batch"): (steps, [step.loss for step in progress.steps]),
        _("held-out text"): (measured, [value.loss for _done, value in progress.measurements]),
    }
    if run.floor is not None:
        data[_("the grammar itself")] = ([0, run.settings.steps], [run.floor] * 2)
    page.growing_chart(
        figures.long_table({(name, ""): points for name, points in data.items()}),
        figures.lines(
            list(data),
            [""],
            last_step=run.settings.steps,
            x_title=_("step"),
            y_title=_("loss (nats per token)"),
            colours=_LOSS_COLOURS,
        ),
        key="training-live",
        alt=_("Loss on each training batch and on held-out text at each step, and the loss of the grammar itself."),
    )


def _next_token(run: TrainingRun, progress: Progress) -> None:
    index = run.probe(language())
    prompt = run.reading.probes[index]
    latest = progress.measurements[-1][1]
    truth = torch.from_numpy(run.truth[index]) if run.truth else None
    wanted = torch.from_numpy(latest.probs[index]) if truth is None else truth
    # Texts repeat and ids do not, so a token is named by both.
    followed = {
        f"{visible(run.tokenizer.token_bytes(token))} · {token}": token for token in top(wanted, _FOLLOWED).ids.tolist()
    }
    if truth is None:
        st.markdown(
            _("After {prompt}: the most probable next tokens of the model.").format(prompt=markdown_literal(prompt))
        )
    else:
        distance = total_variation(torch.from_numpy(latest.probs[index]), truth).item()
        st.markdown(
            _(
                "After **{prompt}**: the model's probabilities approach those of the grammar (dashed). Total "
                "variation distance now: {tv}"
            ).format(prompt=prompt, tv=f"**{distance:.4f}**")
        )
    measured = [done for done, _value in progress.measurements]
    ends = [0, run.settings.steps]
    kinds = [_("model"), _("grammar")] if truth is not None else [_("model")]
    lines = {
        (label, kinds[0]): (measured, [value.probs[index][token] for _done, value in progress.measurements])
        for label, token in followed.items()
    }
    now = {(label, kinds[0]): ([0], [latest.probs[index][token]]) for label, token in followed.items()}
    if truth is not None:
        lines |= {(label, kinds[1]): (ends, [truth[token].item()] * 2) for label, token in followed.items()}
        now |= {(label, kinds[1]): ([0], [truth[token].item()]) for label, token in followed.items()}
    over_time, at_present = st.columns([3, 2])
    with over_time:
        page.growing_chart(
            figures.long_table(lines),
            figures.lines(
                list(followed),
                kinds,
                last_step=run.settings.steps,
                x_title=_("step"),
                y_title=_("probability"),
                percent=True,
            ),
            key="training-drift",
            alt=_(
                "Probabilities of the most probable next tokens during training; the grammar's values are dashed, "
                "where known."
            ),
        )
    with at_present:
        page.growing_chart(
            figures.long_table(now),
            figures.bars(list(followed), kinds, x_title=_("probability")),
            key="training-now",
            alt=_("The model's next-token probabilities now, with those of the grammar where known."),
        )
    st.caption(_("Text it generates (same random numbers each time):"))
    text = run.tokenizer.decode_bytes([*run.tokenizer.encode(prompt).ids, *latest.sample[index]])
    st.code(visible(text), language=None, wrap_lines=True)


def numbers(run: TrainingRun) -> None:
    """Show the table of what was measured."""
    progress = run.training.progress
    index = run.probe(language())
    rows = [
        {
            _("step"): done,
            _("held-out loss (nats)"): value.loss,
            _("held-out perplexity"): float(np.exp(value.loss)),
            **(
                {_("distance to the grammar"): total_variation(value.probs[index], run.truth[index]).item()}
                if run.truth
                else {}
            ),
            _("norm, input side"): value.sides.input_norm,
            _("norm, output side"): value.sides.output_norm,
            _("cosine of the embedding's two gradients"): value.sides.cosine,
        }
        for done, value in progress.measurements
    ]
    page.numbers_table(
        pd.DataFrame(rows),
        "training-live",
        {name: "number" for name in (rows[0] if rows else {}) if name != _("step")},
    )
