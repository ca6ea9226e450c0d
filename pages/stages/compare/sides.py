"""The two sides: A is what the explorer shows, B is chosen here."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from typing import TYPE_CHECKING, TypeAlias

import streamlit as st

import lmcore
from lmcore import LanguageModel, SamplingSettings, chat
from lmcore.compare import Comparison, Served, Side, Told, compare, told
from lmcore.loading import model_name
from lmcore.quantisation import KINDS
from lmcore.requests import RequestError
from lmcore.sampling import PRESETS
from pages.common import conversation, engines, link, served_conversation, session, widgets
from pages.common.models import n_bytes
from pages.common.shared import shared
from pages.common.text import _, markdown_literal, readable, visible
from pages.stages.sampling import knobs
from pages.stages.sampling.pasted import MAX_CHARACTERS as LONGEST_PASTED
from pages.stages.sampling.pasted import said
from pages.stages.tokenization.common import require_text

if TYPE_CHECKING:
    from lmcore.engines.engine import Engine

MOST_TOKENS = 512
"""How many tokens of each side are compared."""
_SEED = 2**32 - 1  # the largest
AnySide: TypeAlias = Side | Served | Told


@dataclass(frozen=True)
class Pair:
    """What is compared.

    Attributes:
        a, b: the two sides.
        cut: whether only the first tokens of one are.
    """

    a: AnySide
    b: AnySide
    cut: bool = False

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
    a = _side_a(seed)
    st.caption(
        _("**A**: {name}, with the prompt and the sampler of this explorer.").format(name=markdown_literal(name_of(a)))
    )
    b = _side_b(a, seed)
    short = [_shortened(side) for side in (a, b)]
    return Pair(short[0], short[1], cut=short[0] is not a or short[1] is not b)


def name_of(side: AnySide) -> str:
    """Return what a side is called."""
    return side.name or (side.model.name if isinstance(side, Side) else side.engine.name)  # type: ignore[union-attr]


def _side_a(seed: int) -> Side | Served:
    served = engines.chosen()
    if served is not None:
        return Served(engine=served, text=require_text(), settings=_own_settings(None, seed), name="")
    found, lm = session.require_tokens(), session.language_model()
    return Side(
        model=lm, ids=tuple(found.ids), text=found.text, settings=_own_settings(lm, seed), stop_ids=lm.end_tokens
    )


def _own_settings(lm: LanguageModel | None, seed: int) -> SamplingSettings:
    return replace(knobs.settings(lm.config.vocab_size if lm else 2**31), seed=seed)


def _side_b(a: Side | Served, seed: int) -> AnySide:
    names = (*(name for name in _names()), *engines.names())
    own = session.model_name()
    given = model_name(own)
    default = names[0] if own in engines.names() else f"{own}:bfloat16" if given.plain else given.bare
    name = widgets.select("compare.model", _("Model of B"), tuple(dict.fromkeys((default, *names))), default)
    if name not in engines.names() and model_name(name).plain:
        weights = ("float32", *KINDS)
        kind = widgets.select("compare.weights", _("Weights of B as"), weights, "float32")
        name = name if kind == "float32" else f"{name}:{kind}"
    reading = _reading(a, name)
    if reading == "pasted":
        return _pasted()
    if name in engines.names():
        engine = engines.find(name)
        assert engine is not None
        text = _other_text() if reading == "other" else _read_by(engine, a)
        with st.popover(_("How B draws"), key="compare.draws", width="stretch"):
            return Served(engine=engine, text=text, settings=_sampler(a, None, seed))
    lm = _second_model(a, name)
    side = _reads(a, lm, reading)
    with st.popover(_("How B draws"), key="compare.draws", width="stretch"):
        return replace(side, settings=_sampler(a, lm, seed), stop_ids=lm.end_tokens)


def _names() -> list[str]:
    return [name for name, model in session.available_models().items() if model.installed]


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


def _read_by(engine: Engine, a: Side | Served) -> str:
    """Return what an engine B reads of A's prompt: of a conversation, what its own template writes."""
    if not conversation.is_on():
        return _text_of(a)
    try:
        return served_conversation.text_for(engine)
    except ValueError as error:
        st.text(readable(str(error)))
        link.stop()


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
    source = st.text_area(
        _("Template of B"), own.source if own else "", key="compare.template", max_chars=LONGEST_PASTED, height=150
    )
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


@shared()
def _sizes() -> dict[str, int]:
    """Bytes of the weights of models that were compared, by name."""
    return {}


def _second_model(a: Side | Served, name: str) -> LanguageModel:
    """Return B's model; where the two do not fit the memory, say so and stop before one drives out the other."""
    budget, sizes = session.models_budget(), _sizes()
    first = a.model.name if isinstance(a, Side) else ""
    known = sizes.get(first, 0) + sizes.get(name, 0) if first != name and name in sizes else 0
    if known <= budget:
        lm = session.language_model(name)
        sizes[name] = n_bytes(lm)
        if isinstance(a, Side):
            sizes[first] = n_bytes(a.model)
        known = sum(sizes[each] for each in {first, name} - {""})
        if known <= budget:
            return lm
    st.info(
        _(
            "{a} and {b} need {need} GB together, and this server keeps {budget} GB of models in memory. Choose a "
            "smaller one of the two."
        ).format(
            a=markdown_literal(visible(first)),
            b=markdown_literal(visible(name)),
            need=f"{known / 1e9:.2f}",
            budget=f"{budget / 1e9:.2f}",
        )
    )
    link.stop()


def _shortened(side: AnySide) -> AnySide:
    if isinstance(side, Side) and side.ids is not None and len(side.ids) > MOST_TOKENS:
        return replace(side, ids=side.ids[:MOST_TOKENS])
    return side


def _described(side: AnySide) -> str:
    if isinstance(side, Told):
        return repr(side)
    settings = side.settings
    what = (side.model.name, side.ids) if isinstance(side, Side) else (side.engine.name, side.engine.generation)
    return repr((what, side.text, settings.as_dict()))
