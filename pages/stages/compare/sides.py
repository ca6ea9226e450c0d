"""The two sides: A is what the explorer shows, or another model that reads the same; B is chosen here."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import streamlit as st

import lmcore
from lmcore import LanguageModel, SamplingSettings, chat
from lmcore.compare import Comparison, Served, Side, Told, compare, told
from lmcore.requests import RequestError
from lmcore.sampling import PRESETS
from pages.common import conversation, engines, link, served_conversation, session, widgets
from pages.common.text import _, readable
from pages.stages.compare import models
from pages.stages.sampling import knobs
from pages.stages.sampling.pasted import MAX_CHARACTERS as LONGEST_PASTED
from pages.stages.sampling.pasted import said
from pages.stages.tokenization.common import require_text

if TYPE_CHECKING:
    from lmcore.engines.engine import Engine

MOST_TOKENS = 512
"""How many tokens of each side are compared."""
_SEED = 2**32 - 1  # the largest
_TEMPLATE = "compare.template"  # as it was typed for B; None for the one that B has
_TAKEN = "compare.template.taken"  # what the field gave last
AnySide: TypeAlias = Side | Served | Told


class _Read(NamedTuple):
    """A text, and the tokens of it."""

    text: str
    ids: tuple[int, ...]


@dataclass(frozen=True)
class Pair:
    """What is compared.

    Attributes:
        a, b: the two sides.
        opens: the values of an address with which the explorer shows A, and B; empty where none do.
        cut: how many tokens of the one that is cut are compared; None where both are whole.
    """

    a: AnySide
    b: AnySide
    opens: tuple[Mapping[str, Any], Mapping[str, Any]]
    cut: int | None = None

    @property
    def key(self) -> str:
        """The same for the same two, on every page of every session."""
        return hashlib.sha256("\0".join(map(_described, (self.a, self.b))).encode("utf-8", "surrogatepass")).hexdigest()

    def comparison(self, max_new_tokens: int = 0) -> Comparison:
        """Return their comparison; the passes of local models are those that all sessions share."""
        a, b = (
            replace(side, max_new_tokens=max_new_tokens) if isinstance(side, (Side, Served)) else side
            for side in (self.a, self.b)
        )
        return compare(a, b, forward=session.forward(), lock=session.forward_lock())

    @property
    def local(self) -> tuple[LanguageModel, LanguageModel] | None:
        """The two models, where both are here."""
        return (self.a.model, self.b.model) if isinstance(self.a, Side) and isinstance(self.b, Side) else None


def choose() -> Pair:
    """Show what A is and let the reader choose B; say why, and stop, where one of them cannot be read."""
    knobs.remember()
    seed = min(max(link.remember("seed", 0, int), 0), _SEED)
    a, opens_a = _side_a(seed)
    b, opens_b = _side_b(a, seed)
    short = [_shortened(side) for side in (a, b)]
    cut = [
        len(now.ids or ()) for now, side in zip(short, (a, b), strict=True) if now is not side and isinstance(now, Side)
    ]
    return Pair(short[0], short[1], (opens_a, opens_b), min(cut, default=None))


def name_of(side: AnySide) -> str:
    """Return what a side is called."""
    return side.name or (side.model.name if isinstance(side, Side) else side.engine.name)  # type: ignore[union-attr]


def _side_a(seed: int) -> tuple[Side | Served, dict[str, Any]]:
    """Let the reader choose A's model; return A with the values that make the explorer show it."""
    own, name = session.model_name(), models.of_a()
    if name in engines.names():
        engine = engines.find(name)
        assert engine is not None
        side: Side | Served = Served(engine=engine, text=_prompt(engine).text, settings=_own_settings(None, seed))
    else:
        lm = session.language_model() if name == own else models.beside([own], name)
        found = _prompt(lm)
        side = Side(model=lm, ids=found.ids, text=found.text, settings=_own_settings(lm, seed), stop_ids=lm.end_tokens)
    return side, _opens(name, side)


def _prompt(reader: LanguageModel | Engine) -> _Read:
    """Return the explorer's prompt as a model or an engine reads it: a conversation by its own template."""
    if engines.chosen() is None and reader is session.language_model():
        found = session.require_tokens()  # says what is wrong with the prompt
        return _Read(found.text, tuple(found.ids))
    text = require_text()
    if conversation.is_on():
        try:
            text = (
                conversation.RenderedText(conversation.rendered(reader).text)
                if isinstance(reader, LanguageModel)
                else served_conversation.text_for(reader)
            )
        except ValueError as error:
            st.text(readable(str(error)))
            link.stop()
    if not isinstance(reader, LanguageModel):
        return _Read(text, ())
    ids = session.encoding(text, reader.name).ids
    if not ids:
        st.info(_("A reads no token: type a prompt above."))
        link.stop()
    return _Read(str.__str__(text), tuple(ids))


def _own_settings(lm: LanguageModel | None, seed: int) -> SamplingSettings:
    return replace(knobs.settings(lm.config.vocab_size if lm else 2**31), seed=seed)


def _side_b(a: Side | Served, seed: int) -> tuple[AnySide, dict[str, Any]]:
    """Let the reader choose B; return it with the values that make the explorer show it."""
    name = models.of_b(name_of(a))
    reading = _reading(a, name)
    if reading == "pasted":
        return _pasted(), {}
    lm = None if name in engines.names() else models.beside([session.model_name(), name_of(a)], name)
    side: Side | Served
    if lm is None:
        engine = engines.find(name)
        assert engine is not None
        side = Served(engine=engine, text=_other_text() if reading == "other" else _prompt(engine).text)
    else:
        side = replace(_reads(a, lm, reading), stop_ids=lm.end_tokens)
    with st.popover(_("How B draws"), key="compare.draws", width="stretch"):
        side = replace(side, settings=_sampler(a, lm, seed))
    opens = _opens(name, side)
    if reading in ("control", "plain", "bare"):
        return side, {}  # which no page reads
    if reading == "other":
        opens |= {"prompt": side.text, conversation.FORM: "text"}
    if reading == "template" and st.session_state[_TEMPLATE] is not None:
        opens |= {conversation.TEMPLATE: st.session_state[_TEMPLATE]}
    return side, opens


def _opens(name: str, side: Side | Served) -> dict[str, Any]:
    """Return the values of an address with which the explorer shows a side that reads the prompt."""
    names = ("prompt", conversation.FORM, conversation.CHAT, conversation.TEMPLATE)
    prompt = {each: st.session_state[each] for each in names if st.session_state.get(each) is not None}
    return {"model": name, **prompt, **knobs.address(side.settings)}


def _reading(a: Side | Served, name: str) -> str:
    """Let the reader choose what B reads."""
    titles = {
        "same": _("the same"),
        "other": _("another text"),
        "control": _("control strings as control tokens"),
        "plain": _("control strings as text"),
        "bare": _("no token put before the text"),
        "template": _("the conversation by another template"),
        "pasted": _("a pasted request and its answer"),
    }
    if isinstance(a, Served) or name in engines.names():
        titles = {key: title for key, title in titles.items() if key in ("same", "other", "pasted")}
    if not conversation.is_on():
        titles.pop("template", None)
    return widgets.select("compare.reads", _("B reads"), tuple(titles), "same", format_func=titles.__getitem__)


def _other_text() -> str:
    text = widgets.text("compare.text", _("Text of B"), "", max_chars=session.MAX_CHARACTERS)
    if not text:
        st.info(_("Type the text that B reads."))
        link.stop()
    return text


def _text_of(a: Side | Served) -> str:
    return str.__str__(a.text or "")


def _reads(a: Side | Served, lm: LanguageModel, reading: str) -> Side:
    """Return what a local B reads."""
    if reading == "other":
        text: str = _other_text()
    elif conversation.is_on():
        try:
            # By B's own template, where the reader typed none.
            text = _by_template(lm) if reading == "template" else conversation.rendered(lm).text
        except ValueError as error:
            st.text(readable(str(error)))
            link.stop()
    else:
        text = _text_of(a)
    rendered = conversation.is_on() and reading != "other"
    control = reading == "control" or (rendered and reading != "plain")
    found = lm.tokenizer.encode(text, special_tokens=control, add_first=not rendered and reading != "bare")
    if not found.ids:
        st.info(_("B reads no token: type a text."))
        link.stop()
    return Side(model=lm, ids=tuple(found.ids), text=text)


def _by_template(lm: LanguageModel) -> str:
    """Return the conversation as a template writes it that is typed here.

    Raises:
        ValueError: the template refuses.
    """
    own = conversation.template(lm)
    written = own.source if own else ""
    typed, key = link.remember(_TEMPLATE, None), f"{_TEMPLATE}.{lm.name}"
    if key in st.session_state and typed != st.session_state.get(_TAKEN):  # a link has brought another one
        st.session_state[key] = written if typed is None else typed
    source = st.text_area(
        _("Template of B"),
        written if typed is None else typed,
        key=key,
        max_chars=LONGEST_PASTED,
        height=150,
    )
    st.session_state[_TEMPLATE] = st.session_state[_TAKEN] = None if source == written else source
    now = conversation.current()
    used = chat.template_of(lm, source or "")
    return chat.render(used, now.messages, now=datetime.combine(date.today(), time()), **now.options()).text


def _sampler(a: Side | Served, lm: LanguageModel | None, seed: int) -> SamplingSettings:
    """Let the reader choose how B draws."""
    titles = {"same": _("as A"), "knobs": _("its own knobs"), **{name: each.title for name, each in PRESETS.items()}}
    kind = widgets.select(
        "compare.sampler",
        _("B draws"),
        tuple(titles),
        "same",
        format_func=titles.__getitem__,
        help=_("An engine's name stands for its defaults, with those of the model's own file."),
    )
    if kind == "same":
        settings = a.settings
    elif kind == "knobs":
        settings = SamplingSettings(
            temperature=widgets.slider("compare.temperature", _("Temperature of B"), 0.0, 2.0, 1.0, step=0.05),
            top_k=widgets.slider("compare.top_k", _("Top-k of B (0: off)"), 0, 100, 0),
            top_p=widgets.slider("compare.top_p", _("Top-p of B"), 0.0, 1.0, 1.0, step=0.01),
        )
    else:
        own = lm.card.sampling if lm else None
        settings = lmcore.preset(kind, own)  # type: ignore[operator]  # which mypy takes for the module of its name
    return replace(settings, seed=widgets.number("compare.seed", _("Seed of B"), 0, _SEED, seed))


def _pasted() -> Told:
    """Let the reader paste a request and its answer; neither is kept or put into the address: it may hold a key."""
    with st.popover(_("Request and answer"), key="compare.pasted"):
        request = st.text_area(_("The request"), key="compare.request", max_chars=LONGEST_PASTED, height=150)
        answer = st.text_area(
            _("The answer"),
            key="compare.answer",
            max_chars=LONGEST_PASTED,
            height=150,
            help=_("The JSON that came: of OpenAI's interfaces, vLLM, SGLang, llama-server or Ollama, with logprobs."),
        )
        st.caption(_("Both are forgotten when you leave this page, and keys in them are not read."))
    if not (request or "").strip():
        st.info(_("Paste a request as it was sent, and the answer that came."))
        link.stop()
    try:
        return told(request, answer or "")
    except RequestError as wrong:
        st.info(readable(said(wrong.note)))
        link.stop()


def _shortened(side: AnySide) -> AnySide:
    """Return a side of no more tokens than are compared and its model takes: itself, where it has no more."""
    if not isinstance(side, Side) or side.ids is None:
        return side
    most = min(MOST_TOKENS, side.model.config.context_length)
    return replace(side, ids=side.ids[:most]) if len(side.ids) > most else side


def _described(side: AnySide) -> str:
    if isinstance(side, Told):
        return repr(side)
    settings = side.settings
    what = (side.model.name, side.ids) if isinstance(side, Side) else (side.engine.name, side.engine.generation)
    return repr((what, side.text, settings.as_dict()))
