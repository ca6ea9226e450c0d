"""Training a small model while one looks on, in a thread of the server's: what to train, and the buttons."""

from __future__ import annotations

import streamlit as st

import lmcore
from lmcore.config import ModelConfig, PositionEncodingName
from lmcore.training.texts import MAX_CHARACTERS
from lmcore.training.trial import TrialSettings
from pages.common import link, page, widgets
from pages.common.text import _, in_language
from pages.stages.position.common import encoding_titles
from pages.stages.training import watch
from pages.stages.training.example_texts import EXAMPLE_PROBES, EXAMPLE_TEXTS
from pages.stages.training.run import Reading, TrainingRun, start

ENCODINGS: tuple[PositionEncodingName, ...] = ("rope", "learned", "sinusoidal", "relative", "alibi", "none")
RATES = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)
RUN = "training.run"  # in the session: survives page changes; when the session ends, so does the training
_PROBLEM = "training.problem"
_TEXT = "training.own_text"
MOST_STEPS, WIDEST = 1000, 96
_MAX_IN_ADDRESS = 600  # characters; a longer text stays in the session
_REFRESH = 1.5  # seconds between two looks at the training

CODE = """
import lmcore
from lmcore.training.texts import OwnText, SmallWorldText, character_tokenizer
from lmcore.training.trial import Trial, TrialSettings, grammar_loss

settings = {settings}
{reading}
trial = Trial(settings, tokenizer, probes={probes}, text=text)
for step in trial.steps():
    if (step.step + 1) % 10 == 0:
        print(step.step + 1, step.loss, trial.measure().loss)
"""
_WORLD_CODE = """tokenizer = lmcore.builtin.tokenizer()
text = SmallWorldText(tokenizer)
print("the grammar's own loss", grammar_loss(tokenizer))"""
_OWN_CODE = """own = {own!r}
tokenizer = {tokenizer}
text = OwnText(own, tokenizer)"""


def show() -> None:
    """Draw the view."""
    controls, picture = page.workbench()
    run: TrainingRun | None = st.session_state.get(RUN)
    alive = run is not None and run.training.progress.alive
    with controls:
        buttons = st.container()  # in sight without scrolling, though they need what is chosen below them
        # While one is under way they change nothing, and on a phone they would stand before its picture.
        with st.expander(_("Settings of the next training")) if alive else st.container():
            reading = _choose_text()
            settings = _choose(reading)
        with buttons:
            _buttons(run, settings, reading)
    with picture:
        if st.session_state.get(_PROBLEM):
            st.info(_("The model cannot be trained on this text."))
            st.code(st.session_state[_PROBLEM], language=None, wrap_lines=True)
        if run is None:
            watch.before(settings, reading)
            st.markdown(
                _(
                    "Nothing has been trained yet. Press Start: the model begins with random numbers, near the upper "
                    "line. Its curves, the text it generates and the map of its tokens appear here while it learns."
                )
            )
        else:
            st.fragment(watch.show, run_every=_REFRESH if alive else None)(run, alive)
    if run is not None and not alive:
        watch.numbers(run)
    page.snippet(_code(settings, reading))


def _choose_text() -> Reading:
    """Let the reader choose what is read."""
    source = widgets.select(
        "training.text",
        _("Training text"),
        ["world", "own"],
        "world",
        format_func={"world": _("the small world"), "own": _("my text")}.__getitem__,
    )
    if source == "world":
        return Reading()
    if len(st.session_state.get(_TEXT) or "") <= _MAX_IN_ADDRESS:
        link.remember(_TEXT, in_language(EXAMPLE_TEXTS))
    own = st.text_area(
        _("Text"),
        st.session_state.get(_TEXT) or "",
        key=_TEXT,
        height=180,
        max_chars=MAX_CHARACTERS,
        persist_state="session",
        help=_("The last tenth of the text is held out: the model is not trained on it."),
    )
    units = widgets.select(
        "training.units",
        _("Tokens"),
        ["characters", "bpe"],
        "characters",
        format_func={"characters": _("characters"), "bpe": _("built-in BPE")}.__getitem__,
    )
    probe = widgets.text("training.probe", _("Prompt to follow"), in_language(EXAMPLE_PROBES), max_chars=40)
    return Reading(own or "", units == "characters", probe)


def _encoding(chosen: str) -> PositionEncodingName:
    return next(name for name in ENCODINGS if name == chosen)


def _choose(reading: Reading) -> TrialSettings:
    encodings = encoding_titles()
    d_model = widgets.slider("training.d_model", "d_model", 16, WIDEST, 40, step=8)
    rate = widgets.select("training.rate", _("Highest learning rate"), RATES, 0.01)
    steps = widgets.slider("training.steps", _("Steps"), 50, MOST_STEPS, 400, step=50)
    with st.expander(_("More settings")):
        settings = TrialSettings(
            d_model=d_model,
            learning_rate=rate,
            steps=steps,
            position_encoding=_encoding(
                widgets.select(
                    "training.encoding", _("Position encoding"), ENCODINGS, "rope", format_func=encodings.__getitem__
                )
            ),
            tie_embeddings=widgets.toggle(
                "training.tied",
                _("Tied"),
                True,
                help=_("One shared matrix for the embedding and the head, or two matrices."),
            ),
            batch_size=widgets.slider("training.batch", _("Batch size (windows of 64 tokens)"), 4, 32, 16, step=4),
            seed=widgets.number("training.seed", _("Seed"), 0, 999_999, 1, step=1),
        )
    if reading.own is None or not reading.characters:
        config: ModelConfig = settings.config(lmcore.builtin.tokenizer().vocab_size)
        st.caption(
            _("{n:,} parameters: {layers} blocks, {heads} heads, d_mlp {d_mlp}.").format(
                n=lmcore.parameters.count(config).total,
                layers=config.n_layers,
                heads=config.n_heads,
                d_mlp=config.d_mlp,
            )
        )
    return settings


def _buttons(run: TrainingRun | None, settings: TrialSettings, reading: Reading) -> None:
    """Show what can be done; a new start ends what this session trained before."""
    if run is None or not run.training.progress.alive:
        st.button(
            _("Start"),
            key="training.start",
            type="primary",
            on_click=_start,
            args=(settings, reading),
            width="stretch",
        )
        return
    if run.training.asked_to_pause:
        st.button(_("Resume"), key="training.resume", type="primary", on_click=run.training.resume, width="stretch")
    else:
        st.button(_("Pause"), key="training.pause", on_click=run.training.pause, width="stretch")
    st.button(_("Stop"), key="training.stop", on_click=run.training.stop, width="stretch")


def _start(settings: TrialSettings, reading: Reading) -> None:
    st.session_state.pop("training.moment", None)
    st.session_state.pop("training.followed", None)
    try:
        st.session_state[RUN] = start(settings, reading)
        st.session_state[_PROBLEM] = ""
    except ValueError as error:
        st.session_state[_PROBLEM] = str(error)


def _code(settings: TrialSettings, reading: Reading) -> str:
    if reading.own is None:
        made = _WORLD_CODE
    else:
        tokenizer = "character_tokenizer(own)" if reading.characters else "lmcore.builtin.tokenizer()"
        made = _OWN_CODE.format(own=reading.own, tokenizer=tokenizer)
    return CODE.format(settings=settings, reading=made, probes=reading.probes)
