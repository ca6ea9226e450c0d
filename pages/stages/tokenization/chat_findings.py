"""What is wrong with a conversation, in sentences; what it costs the model is measured in the background."""

from __future__ import annotations

from typing import Any

import streamlit as st

from lmcore import LanguageModel, chat
from lmcore.chat.check import MOST_MEASURED, SECONDS
from lmcore.chat.findings import KINDS
from lmcore.worker import Worker, each_of
from pages.common import page, session
from pages.common.conversation import Conversation
from pages.common.shared import shared
from pages.common.text import _, markdown_literal

Other = chat.ChatTemplate | chat.Elsewhere | None
_MEASURING = "chat.measuring"  # (what is asked, Worker)
_REFRESH, _AT_ONCE = 0.4, 0.6  # seconds between two looks; what is done by then shows no bar


def found_in(lm: LanguageModel, used: chat.ChatTemplate, now: Conversation, other: Other) -> tuple[chat.Finding, ...]:
    """Return what is wrong, without what it costs."""
    asked = (lm.name, used.source, now.text, repr(other), lm, used, now, other)
    found = _checked(*asked)
    if any(finding.kind in ("refused", "other_unknown") for finding in found):  # another try may do
        _checked.clear(*asked)
    return found


@shared(entries=64)
def _checked(
    name: str,
    source: str,
    text: str,
    second: str,
    _lm: LanguageModel,
    _template: chat.ChatTemplate,
    _now: Conversation,
    _other: Other,
) -> tuple[chat.Finding, ...]:
    return chat.check(_lm, _now.messages, template=_template, other=_other, **_now.options())


def show(
    lm: LanguageModel,
    used: chat.ChatTemplate,
    now: Conversation,
    other: Other,
    answer: str,
    found: tuple[chat.Finding, ...],
) -> None:
    """Say what was found; with a true answer, what it costs as well, as far as that is measured."""
    answer = answer.strip()
    if not found or not answer:
        _say(found)
        return
    asked = (lm.name, used.source, now.text, repr(other), answer)
    before = st.session_state.get(_MEASURING)
    if before is None or before[0] != asked:
        if before is not None:
            before[1].stop()
        options = now.options()
        job = Worker(
            each_of(
                lambda: chat.checking(lm, now.messages, template=used, other=other, answer=answer, **options),
                session.forward_lock(),
            ),
            name="measuring harm",
            keep=1,
        )
        job.join(_AT_ONCE)
        before = st.session_state[_MEASURING] = asked, job
    job = before[1]
    st.fragment(_measured, run_every=_REFRESH if job.running else None)(job, found, job.running)


def _measured(job: Worker[chat.Checked], found: tuple[chat.Finding, ...], was_running: bool) -> None:
    running, latest = job.running, job.latest
    if was_running and not running:
        st.rerun()
    if running:
        done, total = (latest.done, latest.total) if latest else (0, 0)
        st.progress(
            done / total if total else 0.0,
            text=_("Measuring what the faults cost: {done} of {total}").format(done=done, total=total or "…"),
        )
        st.button(_("Stop"), key="chat.measuring.stop", icon=":material/stop:", on_click=job.stop)
    _say(latest.findings if latest else found)
    if job.error is not None:
        st.error(_("This could not be finished; the results so far are shown."))
        page.failure(job.error)
    elif job.state == "stopped":
        st.caption(_("Stopped early; the results so far are shown."))


def _say(findings: tuple[chat.Finding, ...]) -> None:
    if not findings:
        st.markdown("✓ " + _("Nothing is wrong between messages, template, tokenizer and end tokens."))
        return
    lines = []
    for finding in findings:
        consequence, mend = (
            _(sentence).format(**{name: _literal(value) for name, value in finding.values.items()})
            for sentence in KINDS[finding.kind]
        )
        lines.append(f"- ⚠ {consequence} {mend}{_harm(finding.harm)}")
    st.markdown("\n".join(lines))
    unmeasured = {finding.unmeasured for finding in findings}
    if "long" in unmeasured:
        st.caption(
            _(
                "Not everything is measured: text and answer together have more than {n:,} tokens, or more than the "
                "model's context."
            ).format(n=MOST_MEASURED)
        )
    if "late" in unmeasured:
        st.caption(_("Not everything is measured: that stops after {n:.0f} seconds.").format(n=SECONDS))


def _literal(value: Any) -> str:
    return markdown_literal(value) if isinstance(value, str) else str(value)


def _harm(harm: chat.Harm | None) -> str:
    if harm is None:
        return ""
    sentence = {
        "loss": _("The true answer's loss: {as_is:.3f} nats per token as it is, {mended:.3f} when mended."),
        "probability": _(
            "After the true answer, the probability that generation stops: {as_is:.4f} as it is, {mended:.4f} when "
            "mended."
        ),
    }[harm.measure]
    return " **" + sentence.format(as_is=harm.as_is, mended=harm.mended) + "**"
