"""Messages to template to text to ids: what the model really gets, where it came from, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd
import streamlit as st

from lmcore import LanguageModel, chat
from pages.common import conversation, link, page
from pages.common.conversation import Conversation
from pages.common.text import _, markdown_literal, readable, visible
from pages.live.chat_text import chat_text, origin
from pages.live.token_groups import token_groups
from pages.stages.tokenization import chat_findings, chat_second
from pages.stages.tokenization.chat_second import Second
from pages.stages.tokenization.common import drawn_groups

MOST_TEMPLATE = 100_000
MOST_ANSWER = 500
ANSWER = "chat.answer"
EXAMPLE = """{% for message in messages %}
<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}
{% if add_generation_prompt %}
<|im_start|>assistant
{% endif %}"""

CODE = """
import lmcore
from lmcore import chat

lm = lmcore.load({name!r})
messages = {messages!r}
options = {options!r}
template = {template}
rendered = chat.render(template, messages, **options)
for span in rendered.spans:
    print(span.kind, span.message, span.field, repr(span.text))
print(chat.encode(lm, messages, template=template, **options).ids)
for finding in chat.check(lm, messages, template=template, answer={answer!r}, **options):
    print(finding.consequence, finding.mend, finding.harm)
"""


def show(lm: LanguageModel) -> None:
    """Draw the view."""
    now = conversation.current()
    controls, picture = page.workbench()
    with controls:
        _form()
        template_field(lm.chat_template, lm.name)
    used = conversation.template(lm) or chat.template_of(lm, EXAMPLE)
    with picture:
        try:
            rendered = conversation.rendered(lm, now, used)
        except ValueError as error:
            st.text(readable(str(error)))  # a template says what it likes
            with controls:
                _variables(now, tuple(now.variables))  # one of them may be why
            link.stop()
    with controls:
        _variables(now, rendered.variables)
        second = chat_second.choose(lm, used, now)
        answer = _answer()
    other = _other(lm, used, second)
    with picture:
        if conversation.template(lm) is None:
            _say_example(lm)
        findings = chat_findings.found_in(lm, used, now, other)
        chat_text(rendered, now.messages, findings, key="chat.text")
        _legend()
    found = chat.encode_rendered(lm.tokenizer, rendered)
    chat_findings.show(lm, used, now, other, answer, findings)
    if second is not None:
        chat_second.show(rendered, found, second, now, lm.name)
    st.markdown(
        "**"
        + _("{n:,} ids, {control:,} of them control tokens").format(
            n=len(found), control=sum(i in lm.tokenizer.special_tokens.values() for i in found.ids)
        )
        + "**"
    )
    token_groups(found.tokens, found.ids, drawn_groups(found), key="chat.groups", label=_("The conversation's tokens"))
    page.numbers_table(_table(rendered, now), "chat")
    page.snippet(
        CODE.format(
            name=lm.name,
            messages=[dict(message) for message in now.messages],
            options=now.options(),
            template="lm.chat_template" if used == lm.chat_template else repr(used.source),
            answer=answer or None,
        )
        + (chat_second.CODE.format(code=second.code) if second is not None else "")
    )


def _other(lm: LanguageModel, used: chat.ChatTemplate, second: Second | None) -> chat_findings.Other:
    """Return what should write the same as the template in use: what was chosen, else the model's own."""
    if second is not None and (second.elsewhere is not None or second.tokenizer is lm.tokenizer):
        return second.elsewhere or second.template
    return lm.chat_template if lm.chat_template != used else None


def _say_example(lm: LanguageModel) -> None:
    said, use = st.columns([4, 1], vertical_alignment="center")
    said.caption(
        _(
            "{name} has no chat template, and nobody trained it on conversations. This is what a common template, "
            "ChatML, would write. No other page uses it until you say so."
        ).format(name=markdown_literal(lm.name))
    )
    use.button(
        _("Use this template"),
        key="chat.example",
        on_click=lambda: st.session_state.update({conversation.TEMPLATE: EXAMPLE}),
    )


def _form() -> None:
    if conversation.is_on():
        st.caption(_("The prompt above is this conversation: every page works on its ids."))
        return
    st.caption(_("The prompt above is a text. Here it is the only message of a conversation."))
    st.button(
        _("Make the prompt a conversation"),
        key="chat.begin",
        on_click=conversation.switch,
        args=(True,),
        type="primary",
    )


def template_field(own: chat.ChatTemplate | None, name: str) -> None:
    """Let the reader type a template, or go back to the own one of what is called `name`."""
    typed = st.session_state.get(conversation.TEMPLATE)
    label = _("The template is typed") if typed else _("Type or paste a template")
    with st.popover(label, icon=":material/code:", width="stretch"):
        st.text_area(
            _("A template in Jinja"),
            typed or (own.source if own else EXAMPLE),
            key=f"chat.typed.{name}",
            height=320,
            max_chars=MOST_TEMPLATE,
        )
        with st.container(horizontal=True):
            st.button(_("Use it"), key="chat.use", on_click=_use, args=(f"chat.typed.{name}", own))
            st.button(_("The model's own"), key="chat.own", on_click=_use, args=(None, own), disabled=not typed)


def _use(key: str | None, own: chat.ChatTemplate | None) -> None:
    source = st.session_state[key] if key else ""
    st.session_state[conversation.TEMPLATE] = None if own is not None and source == own.source else source or None


def _variables(now: Conversation, names: Sequence[str]) -> None:
    """Show a switch or a field for each variable of the template; they are the conversation's."""
    is_on = conversation.is_on()
    _switch(_("Generation prompt"), "add_generation_prompt", now.prompt, is_on, lambda on: _set(prompt=on))
    is_answer = now.messages[-1]["role"] == "assistant"
    _switch(
        _("Continue the last message"),
        "continue_final_message",
        now.continued,
        is_on and (is_answer or now.continued),
        lambda on: _set(continued=on),
    )
    known = {"messages", "tools", "documents", "add_generation_prompt"}
    for name in names:
        if name in known or name.endswith("_token"):
            continue
        if name.startswith(("enable_", "add_", "keep_", "clear_", "preserve_", "use_")) or name == "thinking":
            value = bool(now.variables.get(name, False))
            _switch(f"`{visible(name)}`", name, value, is_on, partial(_set_variable, name))
        else:
            key = f"chat.variable.{name}"
            st.session_state[key] = str(now.variables.get(name, ""))
            st.text_input(
                f"`{visible(name)}`",
                key=key,
                disabled=not is_on,
                max_chars=200,
                on_change=lambda key=key, name=name: _set_variable(name, st.session_state[key] or None),
            )


def _switch(label: str, name: str, value: bool, is_on: bool, take: Callable[[bool], None]) -> None:
    key = f"chat.switch.{name}"
    st.session_state[key] = value
    st.toggle(label, key=key, disabled=not is_on, on_change=lambda: take(st.session_state[key]))


def _set(**changed: bool) -> None:
    now = replace(conversation.current(), **changed)  # type: ignore[arg-type]
    if changed.get("continued"):
        now = replace(now, prompt=False)
    elif changed.get("prompt"):
        now = replace(now, continued=False)
    conversation.take(now)


def _set_variable(name: str, value: bool | str | None) -> None:
    now = conversation.current()
    variables = {key: other for key, other in now.variables.items() if key != name}
    if value is not None:
        variables[name] = value
    conversation.take(replace(now, variables=variables))


def _answer() -> str:
    now = link.remember(ANSWER, "")
    return st.text_input(
        _("The true answer"),
        now,
        key=ANSWER,
        max_chars=MOST_ANSWER,
        persist_state="session",
        help=_("With it, what a fault costs is measured: the model's loss of this answer, with and without the fault."),
    )


def _legend() -> None:
    st.caption(
        _(
            "A colour is a message; grey are the template's own words; framed are control tokens; dotted is another "
            "value; hatched is what was made of several; italic is thinking, bold a call of a tool. The bar at the "
            "left marks the generation prompt, · a space, ⏎ a new line. Point at a span to see where it came from."
        )
    )


def _table(rendered: chat.Rendered, now: Conversation) -> pd.DataFrame:
    return pd.DataFrame(
        {
            _("start"): [span.start for span in rendered.spans],
            _("end"): [span.end for span in rendered.spans],
            _("text"): [visible(span.text) for span in rendered.spans],
            _("origin"): [origin(span, now.messages) for span in rendered.spans],
            _("generation prompt"): [span.in_prompt for span in rendered.spans],
        }
    )
