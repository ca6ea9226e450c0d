"""A request as sent to an inference server, pasted: what it asks for, and what that server makes of each field."""

from __future__ import annotations

import streamlit as st

from lmcore.requests import SERVERS, Request, RequestError, read
from lmcore.requests.fields import MESSAGES
from lmcore.sampling import Note
from pages.common import conversation, engines, session, widgets
from pages.common.escape import whole_characters
from pages.common.text import _, readable, visible
from pages.live.sampling_lab.engines import allowed
from pages.stages.sampling import knobs

MAX_CHARACTERS = 200_000
_TEXT, _TAKEN = "request.text", "request.taken"  # neither is in the address: a request may hold a key
_HINT = 'curl http://localhost:8000/v1/completions -d \'{"prompt": "…", "temperature": 0.7}\''


def show() -> None:
    """Offer the field; a press sets the lab, and the prompt, to what the request asks for."""
    if st.session_state.pop(_TAKEN, False):
        st.rerun(scope="app")  # the prompt is outside this fragment
    with st.popover(_("Paste a request"), key="request", type="tertiary", icon=":material/content_paste:"):
        st.caption(
            _(
                "A JSON body or a curl line as sent to OpenAI, vLLM, SGLang, llama-server, Ollama or TGI. The text is "
                "forgotten when you leave this page, and keys in it are not read."
            )
        )
        # As it may hold a key, its state is not persisted.
        text = st.text_area(_("The request"), key=_TEXT, max_chars=MAX_CHARACTERS, placeholder=_HINT)
        titles = {"": _("by its address and fields"), **{name: each.title for name, each in SERVERS.items()}}
        server = widgets.select("request_to", _("Sent to"), list(titles), "", format_func=titles.__getitem__)
        if not (text or "").strip():
            return
        try:
            request = read(text, server)
        except RequestError as wrong:
            st.info(readable(said(wrong.note)))
            return
        _told(request)
        st.button(
            _("Use it here"),
            key="request.use",
            on_click=_use,
            args=(request,),
            disabled=request.settings is None and not request.text,
            help=_("Sets the lab to what this server samples with, and the prompt to its text."),
        )


def said(note: Note) -> str:
    """Return a remark in the session's language; names that the reader pasted are shown as they are."""
    values = {name: visible(str(value)) for name, value in note.values.items()}
    if "why" in values:
        values["why"] = _(str(note.values["why"]))
    return _(note.template).format(**values)


def _told(request: Request) -> None:
    title = request.server.title
    read_as = (
        _("Read as a request to {server}, which is a guess.")
        if request.is_guess
        else _("Read as a request to {server}.")
    )
    lines = [read_as.format(server=title)]
    if request.settings is None:
        lines.append(_("The server refuses it: {reason}").format(reason=readable(_refusal(request.refused))))
    else:
        given = {name: value for name, value in knobs.given(request.settings).items() if name not in ("order", "rules")}
        used = ", ".join(f"{name} {value!r}" for name, value in given.items())
        lines.append(_("It samples with: {settings}").format(settings=used or _("the plain softmax")))
    if request.prompt_ids:
        lines.append(_("The prompt is given as token ids; it is not taken over."))
    lines += [said(note) for note in request.remarks if note.template != MESSAGES or not _is_chat(request)]
    st.text("\n".join(f"· {line}" for line in lines))


def _refusal(refused: str) -> str:
    if not isinstance(refused, Note):
        return refused
    values = refused.values
    return _("{engine} refuses {stage} {value}: it takes {allowed}.").format(
        engine=values["server"],
        stage=values["field"],
        value=values["value"],
        allowed=allowed(values["setting"], values["allowed"]),
    )


def _use(request: Request) -> None:
    if request.settings is not None:
        knobs.set_to(request.settings)
    if not request.text:
        return
    if _is_chat(request):
        messages = tuple({"role": role, "content": text} for role, text in request.messages)
        conversation.switch(True)  # which begins with the prompt's text
        conversation.take(conversation.Conversation(messages))
    else:
        st.session_state["prompt"] = whole_characters(request.text)
        conversation.switch(False)
    st.session_state["source"] = "model"
    st.session_state[_TAKEN] = True


def _is_chat(request: Request) -> bool:
    """Whether its messages go through the chosen model's chat template."""
    is_served = engines.chosen() is not None
    has_messages = bool(request.messages) and request.prompt is None
    return has_messages and not is_served and session.language_model().chat_template is not None
