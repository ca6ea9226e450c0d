"""The frame of every page: the prompt, the model picker and the language switch."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from lmcore import LanguageModel
from lmcore.distribution import softmax
from lmcore.loading import AvailableModel, model_name
from lmcore.quantisation import KINDS, bits_per_weight
from pages.common import conversation, engines, link, session
from pages.common.escape import whole_characters
from pages.common.models import n_bytes
from pages.common.text import _, browser_language, in_language, markdown_literal, visible
from pages.live.prompt import prompt_field
from pages.locale.languages import LANGUAGES

EXAMPLES = (
    "今天天气很好，",
    "今天天气",
    "我喜欢",
    "小明喜欢小红",
    "小红喜欢小明",
    "苹果发布了",
    "苹果很好吃",
    "患者服用华法林后出现",
    "Anna likes Tom, but Tom likes",
    "The weather today is",
    "The king",
    "Apple released a new",
    "I like",
)
DEFAULT_PROMPTS = {"en": "Anna likes Tom, but Tom likes", "zh": "今天天气很好，"}


def language_switch() -> None:
    """Show the languages; the browser's own is chosen on a first visit."""
    now = _remember_one_of("lang", tuple(LANGUAGES), browser_language())
    st.segmented_control(
        "Language / 语言",
        list(LANGUAGES),
        default=now,
        format_func=lambda code: LANGUAGES[code].title,
        key="lang",
        required=True,
        label_visibility="collapsed",
        persist_state="session",
    )


def prompt_bar() -> None:
    """Show the prompt, with examples to choose from, and the models, in one line."""
    _remember_prompt()
    known = session.available_models()
    names = _with_variant((*known, *engines.names()), known)
    now = _remember_one_of("model", names, names[0], lambda text: str(model_name(text)))
    text, models = st.columns([4, 1], vertical_alignment="center", wrap=False)
    with text:
        prompt_field(
            st.session_state["prompt"],
            EXAMPLES,
            key="bar.prompt",
            help=_("At most {n:,} characters, and no more tokens than the model's context.").format(
                n=session.MAX_CHARACTERS
            ),
            longest=link.LONGEST,
            restores=st.session_state["bar.restores"],
            on_text=_take_prompt,
            conversation=conversation.current() if conversation.is_on() else None,
            on_conversation=_take_conversation,
        )
    models.selectbox(
        _("Model"),
        names,
        names.index(now),
        format_func=lambda name: _title(name, known),
        key="model",
        label_visibility="collapsed",
        persist_state="session",
    )
    if engines.broken():
        st.text(_("The operator's list of engines could not be read. The server's log says why."))
    given = link.replaced("model")
    if given is not None:
        st.text(_("There is no model named {given}; showing {name}.").format(given=given[:60], name=names[0]))


def _with_variant(names: tuple[str, ...], known: Mapping[str, AvailableModel]) -> tuple[str, ...]:
    """Return the names to choose from, and after its model the quantised one that is chosen, or asked for by a link."""
    given = model_name(st.session_state.get("model") or link.text_given("model") or names[0])
    if str(given) in names or given.bare not in known or not known[given.bare].installed:
        return names
    place = names.index(given.bare) + 1
    return (*names[:place], str(given), *names[place:])


def _remember_prompt() -> None:
    if "prompt" not in st.session_state:
        st.session_state["bar.restores"] = link.text_given("prompt") is None
    link.remember("prompt", in_language(DEFAULT_PROMPTS))
    conversation.remember()


def _take_prompt(text: str) -> None:
    st.session_state["prompt"] = whole_characters(text)


def _take_conversation(given: object) -> None:
    """Take what the browser sent: a conversation, or None for a text again."""
    try:
        taken = None if given is None else conversation.Conversation.of(given)
    except ValueError:
        return  # the field sends none like that
    conversation.switch(taken is not None)  # which begins with what was the prompt
    if taken is not None:
        conversation.take(taken)


def _title(name: str, known: Mapping[str, AvailableModel]) -> str:
    return name if name not in known or known[name].installed else _("{name} · not installed").format(name=name)


def notes() -> None:
    """Say what a reader of this model's numbers must know: tokens added in front, half precision, an unknown text."""
    if engines.chosen() is not None:
        return  # its pages say what was found about it
    lm = session.language_model()
    if not 0 < len(session.prompt()) <= session.MAX_CHARACTERS:
        return
    encoding = session.encoding()
    if encoding.n_added:
        added = " ".join(visible(token) for token in encoding.tokens[: encoding.n_added])
        st.caption(
            _(
                "{name} starts every text with {token}: position 0 is that token, and the tokens of the prompt "
                "come after it."
            ).format(name=lm.name, token=f"`{added}`")
        )
    if _is_outside(lm, encoding.ids):
        st.container(key="note-outside").caption(
            _(
                "{name} learned only the texts of the small world. This text is not one of them, so what the model "
                "predicts here means little."
            ).format(name=lm.name)
        )
    if not model_name(lm.name).plain and 0 < len(encoding.ids) <= lm.config.context_length:
        _say_rounding(encoding.ids)


def _is_outside(lm: LanguageModel, ids: list[int]) -> bool:
    truth = session.grammar(lm)
    return truth is not None and 0 < len(ids) <= lm.config.context_length and truth.next_token_probs(ids) is None


def _say_rounding(ids: list[int]) -> None:
    lm = session.language_model()
    given = model_name(lm.name)
    said = []
    if given.weights == "bfloat16":
        said.append(_("The weights are in bfloat16: half the memory, and numbers accurate to two or three digits."))
    elif given.weights in KINDS:
        said.append(
            _("The weights are quantised as {kind} and read back: {bits} bits a weight in a file.").format(
                kind=given.weights, bits=f"{bits_per_weight(lm.model, KINDS[given.weights]):.2f}"
            )
        )
    if given.int8_cache:
        said.append(_("The KV cache keeps 8-bit numbers."))
    exact_bytes = 4 * sum(parameter.numel() for parameter in lm.model.parameters())
    if n_bytes(lm) + exact_bytes > session.models_budget():  # one would drive the other out of memory at each run
        st.caption(" ".join(said))
        return
    rounded, exact = softmax(session.logits()[-1]), softmax(session.logits(ids, given.bare)[-1])
    token = int((rounded - exact).abs().argmax())
    said.append(
        _(
            "After this prompt, the probability that changes most is that of {token}: {rounded} here, {exact} in "
            "float32."
        ).format(
            token=markdown_literal(visible(lm.tokenizer.token_bytes(token))),
            rounded=f"{rounded[token]:.4f}",
            exact=f"{exact[token]:.4f}",
        )
    )
    st.caption(" ".join(said))


def _remember_one_of(key: str, options: tuple[str, ...], default: str, parse: link.Parse = str) -> str:
    if st.session_state.get(key, default) is None:  # a browser left the widget without a choice
        del st.session_state[key]  # the address still has it
    value = link.remember(key, default, parse)
    if value not in options:
        link.replace(key, default, value)
        value = default
    return value
