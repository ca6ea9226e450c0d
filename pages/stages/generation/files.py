"""The tree as a file: saved as JSON, and opened again from a file or a pasted text."""

from __future__ import annotations

import streamlit as st

from lmcore import Encoding, LanguageModel
from lmcore.generation import tree_file
from lmcore.generation.run import GenerationRun
from lmcore.generation.tree_file import Restored, TreeFile
from lmcore.worker import Worker, each_of
from pages.common import conversation, page, session
from pages.common.text import _, ngettext
from pages.stages.generation import runs

_OPENING = "generation.opening"  # (run, Worker) while a file is being opened
_REFUSED = "generation.refused"  # why the last file was not opened
_OPENED = "generation.opened"  # what the last file brought
_CHANGED = "generation.changed"  # whether the template no longer writes the last file's prompt
_UPLOAD, _PASTED = "generation.upload", "generation.pasted"
_REFRESH = 0.3
NOTABLE = 1e-3  # a difference of probabilities that rounding does not make


def show(run: GenerationRun, prompt: Encoding) -> None:
    """Offer the tree as a file, and a place for one."""
    with st.expander(_("Save and open"), icon=":material/save:", expanded=bool(st.session_state.get(_REFUSED))):
        if run.tree.root.children and not run.running:
            page.download(
                _("Save the tree as JSON"),
                "generation-tree.json",
                lambda: _written(run, prompt.text),
            )
        upload, paste = st.columns(2)
        upload.file_uploader(_("A tree saved as JSON"), type="json", key=_UPLOAD, max_upload_size=1)
        paste.text_area(_("Or its text"), key=_PASTED, height=110)
        st.button(
            _("Open"),
            key="generation.open",
            icon=":material/folder_open:",
            on_click=_open,
            disabled=not (st.session_state.get(_UPLOAD) or st.session_state.get(_PASTED)),
        )
        st.caption(
            _(
                "The file is added to what was generated from the same prompt. Ids, settings, seeds and names "
                "are read; every distribution is computed again with the model."
            )
        )
        refused = st.session_state.get(_REFUSED)
        if refused:
            st.error(_("The file could not be opened. Nothing has changed."))
            st.code(refused, language=None, wrap_lines=True)


def _written(run: GenerationRun, prompt: str) -> str:
    chat, template = conversation.origin(prompt) or ("", None)
    return tree_file.to_json(run.tree, prompt, run.node, run.tip, chat, template or "")


def opening() -> None:
    """Show how far a file is that is being opened, or what it brought."""
    found = st.session_state.get(_OPENING)
    if found is not None and found[1].running:
        st.fragment(_watch, run_every=_REFRESH)(found[1])
        return
    if found is not None:
        _finish(*found)
    if st.session_state.get(_OPENED) is not None:
        total, difference = st.session_state.pop(_OPENED)
        told = ngettext("{n} token was read from the file.", "{n} tokens were read from the file.", total)
        st.info(told.format(n=total))
        if st.session_state.pop(_CHANGED, False):
            st.warning(
                _(
                    "The file's conversation gives another text today, by the template or the date. The prompt is the "
                    "file's text, as one message."
                )
            )
        if difference > NOTABLE:
            st.warning(
                _(
                    "The probabilities in the file differ from this model's by up to {difference}, so it was "
                    "made with other weights. This model's probabilities are shown."
                ).format(difference=f"{difference:.3f}")
            )


def _open() -> None:
    st.session_state[_REFUSED] = st.session_state[_OPENED] = None
    given = st.session_state.get(_UPLOAD)
    text = given.getvalue() if given is not None else st.session_state.get(_PASTED) or ""
    lm = session.language_model()
    try:
        file = tree_file.read(text, lm)
        if len(file.prompt) > session.MAX_CHARACTERS:
            raise ValueError(
                f"the prompt in this file has {len(file.prompt):,} characters; the limit is {session.MAX_CHARACTERS:,}."
            )
    except ValueError as error:
        st.session_state[_REFUSED] = str(error)
        return
    prompt = _prompt(lm, file)
    conversation.bring_back(prompt)
    st.session_state[_PASTED] = ""
    run = runs.current(lm, session.encoding(prompt))
    run.stop()
    st.session_state[_OPENING] = (
        run,
        Worker(each_of(lambda: file.restore(run.tree), session.forward_lock()), name="opening", keep=1),
    )


def _prompt(lm: LanguageModel, file: TreeFile) -> str:
    """Return the file's prompt; the conversation that it was is known again, where it still gives that text."""
    if not file.is_rendered:
        return file.prompt
    prompt = conversation.RenderedText(file.prompt)
    try:
        is_known = bool(file.conversation) and conversation.know_again(
            lm, prompt, (file.conversation, file.template or None)
        )
    except ValueError:  # what is no conversation, or is refused by the template
        is_known = False
    if file.conversation and not is_known:
        st.session_state[_CHANGED] = True
    return prompt


def _watch(job: Worker[Restored]) -> None:
    running, latest = job.running, job.latest
    if not running:
        st.rerun()  # the whole page: the tree has grown
    done = latest.done / max(latest.total, 1) if latest else 0.0
    st.progress(done, text=_("Opening the file: computing every distribution anew …"))
    st.button(_("Stop"), key="generation.opening.stop", icon=":material/stop:", on_click=job.stop)


def _finish(run: GenerationRun, job: Worker[Restored]) -> None:
    latest = job.latest
    st.session_state[_OPENING] = None
    st.session_state[_REFUSED] = None if job.error is None else str(job.error)
    if latest is not None:
        if latest.done == latest.total:
            run.node, run.tip = latest.present, latest.tip
        st.session_state[_OPENED] = (latest.done, latest.difference)
        st.session_state[runs.SELECTED] = None
