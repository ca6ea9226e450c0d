"""Training a small model on the small world while one looks on, in a thread of the server's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st
import torch

import lmcore
from lmcore.corpus import Truth
from lmcore.distribution import top, total_variation
from lmcore.training.background import BackgroundTraining, Progress
from lmcore.training.trial import Trial, TrialSettings, grammar_loss
from pages.common import page, widgets
from pages.common.text import _, language, visible
from pages.figures import theme
from pages.figures.training import live as figures

PROBES = {"zh": "今天天气", "en": "The weather today is"}
ENCODINGS = ("rope", "learned", "sinusoidal", "relative", "alibi", "none")
RATES = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)
_RUN = "training.run"  # in the session: survives page changes; when the session ends, so does the training
_REFRESH = 1.5  # seconds between two looks at the training
_MEASURE_EVERY = 20  # steps
_LOSS_COLOURS = (theme.CATEGORICAL[5], theme.CATEGORICAL[0], theme.CATEGORICAL[1])
_FOLLOWED = 5  # next tokens drawn over time

CODE = """
import lmcore
from lmcore.training.trial import Trial, TrialSettings, grammar_loss

settings = {settings}
tokenizer = lmcore.builtin.tokenizer()
trial = Trial(settings, tokenizer, probes={probes})
print("the grammar's own loss", grammar_loss(tokenizer))
for step in trial.steps():
    if (step.step + 1) % 10 == 0:
        print(step.step + 1, step.loss, trial.measure().loss)
"""


@dataclass
class Run:
    """A training that this session has started.

    Attributes:
        settings: what is tried.
        training: the thread at work.
        truth: the grammar's next-token distribution after each probe prompt.
        floor: the grammar's own loss on the held-out windows, nats per token.
    """

    settings: TrialSettings
    training: BackgroundTraining
    truth: tuple[np.ndarray, ...]
    floor: float


def show() -> None:
    """Draw the view."""
    controls, picture = page.workbench()
    run: Run | None = st.session_state.get(_RUN)
    with controls:
        buttons = st.container()  # in sight without scrolling, though they need what is chosen below them
        settings = _choose()
        with buttons:
            _buttons(run, settings)
    alive = run is not None and run.training.progress.alive
    with picture:
        if run is None:
            st.info(
                _(
                    "Nothing has been trained yet. Press Start: the model begins with random numbers and reads new "
                    "text of the small world at every step, and the curves appear here while it learns."
                )
            )
        else:
            st.fragment(_watch, run_every=_REFRESH if alive else None)(run, alive)
    if run is not None and not alive:
        _numbers(run)
    page.snippet(CODE.format(settings=settings, probes=tuple(PROBES.values())))


def _choose() -> TrialSettings:
    settings = TrialSettings(
        d_model=widgets.slider("training.d_model", "d_model", 16, 96, 40, step=8),
        tie_embeddings=widgets.toggle(
            "training.tied", _("Tied"), True, help=_("One matrix for the embedding and the head, or two.")
        ),
        position_encoding=widgets.select("training.encoding", _("Position encoding"), ENCODINGS, "rope"),
        learning_rate=widgets.select("training.rate", _("Highest learning rate"), RATES, 0.01),
        batch_size=widgets.slider("training.batch", _("Batch (windows of 64 tokens)"), 4, 32, 16, step=4),
        steps=widgets.slider("training.steps", _("Steps"), 50, 1000, 400, step=50),
        seed=widgets.number("training.seed", _("Seed"), 0, 999_999, 1, step=1),
    )
    config = settings.config(lmcore.builtin.tokenizer().vocab_size)
    st.caption(
        _("{n:,} parameters: {layers} blocks, {heads} heads, d_mlp {d_mlp}.").format(
            n=lmcore.parameters.count(config).total, layers=config.n_layers, heads=config.n_heads, d_mlp=config.d_mlp
        )
    )
    return settings


def _buttons(run: Run | None, settings: TrialSettings) -> None:
    """Show what can be done; a new start ends what this session trained before."""
    progress = run.training.progress if run else None
    if run is None or progress is None or not progress.alive:
        st.button(_("Start"), key="training.start", type="primary", on_click=_start, args=(settings,), width="stretch")
        return
    if run.training.asked_to_pause:
        st.button(_("Resume"), key="training.resume", type="primary", on_click=run.training.resume, width="stretch")
    else:
        st.button(_("Pause"), key="training.pause", on_click=run.training.pause, width="stretch")
    st.button(_("Stop"), key="training.stop", on_click=run.training.stop, width="stretch")


def _start(settings: TrialSettings) -> None:
    tokenizer = lmcore.builtin.tokenizer()
    trial = Trial(settings, tokenizer, tuple(PROBES.values()))
    truth = Truth(tokenizer)
    told = tuple(truth.next_token_probs(ids) for ids in trial.probes)
    training = BackgroundTraining(trial.steps, trial.measure, _MEASURE_EVERY)
    st.session_state[_RUN] = Run(settings, training, told, grammar_loss(tokenizer))


def _watch(run: Run, was_alive: bool) -> None:
    """Draw how far the training is; runs by itself again and again until it has ended."""
    progress = run.training.progress
    _status(run, progress)
    if progress.measurements:
        _losses(run, progress)
        _drift(run, progress)
    if was_alive and not progress.alive:
        st.rerun()  # the whole page, once: the buttons and the table change


def _status(run: Run, progress: Progress) -> None:
    done, total = len(progress.steps), run.settings.steps
    told = {
        "waiting": _("Waiting: as many trainings as this server allows are running. It starts when one is done."),
        "running": _("Training"),
        "paused": _("Paused"),
        "finished": _("Finished"),
        "stopped": _("Stopped"),
        "failed": _("It failed"),
    }[progress.state]
    st.progress(done / total, text=_("{state} · step {done} of {total}").format(state=told, done=done, total=total))
    if progress.error:
        st.code(progress.error, language=None, wrap_lines=True)
    if not progress.measurements:
        return
    latest = progress.measurements[-1][1]
    loss, perplexity, floor, rate = st.columns(4)
    loss.metric(_("Held-out loss (nats)"), f"{latest.loss:.3f}")
    perplexity.metric(_("Perplexity"), f"{np.exp(latest.loss):.2f}")
    floor.metric(_("The grammar's own loss"), f"{run.floor:.3f}")
    rate.metric(_("Learning rate now"), f"{progress.steps[-1].learning_rate:.2g}" if progress.steps else "0")


def _losses(run: Run, progress: Progress) -> None:
    steps = [step.step + 1 for step in progress.steps]
    measured = [done for done, _value in progress.measurements]
    batch, held_out, grammar = _("batch"), _("held-out text"), _("the grammar itself")
    data = {
        batch: (steps, [step.loss for step in progress.steps]),
        held_out: (measured, [value.loss for _done, value in progress.measurements]),
        grammar: ([0, run.settings.steps], [run.floor] * 2),
    }
    st.vega_lite_chart(
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
        alt=_("Loss on each batch and on held-out text over the steps, and the grammar's own loss."),
    )


def _drift(run: Run, progress: Progress) -> None:
    index = list(PROBES).index(language())
    prompt, truth = list(PROBES.values())[index], torch.from_numpy(run.truth[index])
    tokenizer = lmcore.builtin.tokenizer()
    followed = {visible(tokenizer.token_bytes(token)): token for token in top(truth, _FOLLOWED).ids.tolist()}
    latest = progress.measurements[-1][1]
    distance = total_variation(torch.from_numpy(latest.probs[index]), truth).item()
    st.markdown(
        _(
            "After **{prompt}**: the model's probabilities drift to the grammar's, dashed. Total variation now: {tv}"
        ).format(prompt=prompt, tv=f"**{distance:.4f}**")
    )
    measured = [done for done, _value in progress.measurements]
    ends = [0, run.settings.steps]
    model, grammar = _("model"), _("grammar")
    over_time, now = st.columns([3, 2])
    with over_time:
        lines = {
            (label, model): (measured, [value.probs[index][token] for _done, value in progress.measurements])
            for label, token in followed.items()
        }
        targets = {(label, grammar): (ends, [truth[token].item()] * 2) for label, token in followed.items()}
        st.vega_lite_chart(
            figures.long_table({**lines, **targets}),
            figures.lines(
                list(followed),
                [model, grammar],
                last_step=run.settings.steps,
                x_title=_("step"),
                y_title=_("probability"),
                percent=True,
            ),
            key="training-drift",
            alt=_("Probabilities of the grammar's likeliest next tokens over the steps, the grammar's values dashed."),
        )
    with now:
        pairs = {(label, model): ([0], [latest.probs[index][token]]) for label, token in followed.items()}
        wanted = {(label, grammar): ([0], [truth[token].item()]) for label, token in followed.items()}
        st.vega_lite_chart(
            figures.long_table({**pairs, **wanted}),
            figures.bars(list(followed), [model, grammar], x_title=_("probability")),
            key="training-now",
            alt=_("The model's next-token probabilities now beside the grammar's."),
        )
    st.caption(_("It writes, drawn with the same random numbers each time:"))
    text = tokenizer.decode_bytes([*tokenizer.encode(prompt).ids, *latest.sample[index]])
    st.code(visible(text), language=None, wrap_lines=True)


def _numbers(run: Run) -> None:
    progress = run.training.progress
    index = list(PROBES).index(language())
    truth = run.truth[index]
    page.numbers_table(
        pd.DataFrame(
            [
                {
                    _("step"): done,
                    _("held-out loss (nats)"): value.loss,
                    _("held-out perplexity"): float(np.exp(value.loss)),
                    _("distance to the grammar"): total_variation(value.probs[index], truth).item(),
                    _("cosine of the embedding's two gradients"): value.gradient_cosine,
                }
                for done, value in progress.measurements
            ]
        ),
        "training-live",
        {
            _("held-out loss (nats)"): "%.4f",
            _("held-out perplexity"): "%.3f",
            _("distance to the grammar"): "%.4f",
            _("cosine of the embedding's two gradients"): "%.4f",
        },
    )
