"""The settings in view as a request for another server: exact where its sampler allows, else the nearest found."""

from __future__ import annotations

import json
from typing import Any

import streamlit as st

from lmcore import SamplingSettings
from lmcore.requests import SERVERS, Written, write
from lmcore.sampling import History
from pages.common import conversation, engines, presenter, session, widgets
from pages.common.text import _
from pages.stages.sampling.engines import why
from pages.stages.sampling.sources import Source

MAX_NUMBERS = 400_000  # logits compared at once: 8 positions of 50,000 tokens
_LAST = "request.written"


def show(source: Source, settings: SamplingSettings) -> None:
    """Offer the servers; show the request for the one chosen, how near it comes, and what differs."""
    if presenter.is_on():
        return
    st.subheader(_("Write for another engine"), anchor=False)
    titles = {"": "—", **{name: each.title for name, each in SERVERS.items()}}
    server = widgets.select("write_for", _("A request for"), list(titles), "", format_func=titles.__getitem__)
    if not server:
        st.caption(_("The request that gives this distribution on another server, or the nearest one found."))
        return
    written = _written(source, settings, server)
    st.text(_verdict(written))
    reasons = [] if written.is_exact else why(settings, written.settings)
    if reasons:
        st.text("\n".join(f"· {reason}" for reason in reasons))
    is_prompt = st.session_state["source"] == "model"
    text = str.__str__(session.prompt()) if is_prompt else "…"
    messages = conversation.current().messages if is_prompt and conversation.is_on() else ()
    request = json.dumps(written.request(text, messages=messages), ensure_ascii=False, indent=2)
    as_json, as_curl = st.tabs(["JSON", "curl"])
    as_json.code(request, language="json", wrap_lines=True)
    as_curl.code(written.curl(text, messages=messages), language="bash", wrap_lines=True)


def _written(source: Source, settings: SamplingSettings, server: str) -> Written:
    """Write it once for these settings and this source, not at each run of the page."""
    of = (source.code, source.history_code, settings, server)
    last = st.session_state.get(_LAST)
    if last is None or last[0] != of:
        rows, histories = _positions(source)
        last = st.session_state[_LAST] = (of, write(settings, server, rows, histories))
    kept: Written = last[1]
    return kept


def _positions(source: Source) -> tuple[list[Any], list[History]]:
    """Return the logits in view, and those of other positions of the prompt, with what stands before each."""
    rows, histories = [source.logits], [source.history]
    most = max(MAX_NUMBERS // len(source.logits), 1) - 1
    if most and st.session_state["source"] == "model" and engines.chosen() is None:
        ids = session.encoding().ids
        for place in range(len(ids) - 1, -1, -1)[: most + 1]:
            before = tuple(ids[: place + 1])
            if before != tuple(source.history.prompt) and len(rows) <= most:
                rows.append(session.logits()[place].numpy())
                histories.append(History(prompt=before))
    return rows, histories


def _verdict(written: Written) -> str:
    n, server = len(written.distances), written.server.title
    if written.is_exact:
        return _("{server}: the same distribution at every position, equal logits at a boundary aside.").format(
            server=server
        )
    if written.is_equal:
        return _("{server}: the same distribution at the {n} positions tried. At others it may differ.").format(
            server=server, n=n
        )
    numbers = {"server": server, "mean": f"{written.distances.mean():.4f}", "most": f"{written.distances.max():.4f}"}
    if written.was_searched:
        sentence = _(
            "{server} cannot give this distribution. The nearest request found: total variation distance {mean} on "
            "average over {n} positions, {most} at most. Its numbers are not those of the lab."
        )
    else:
        sentence = _(
            "{server} cannot give this distribution, and no other numbers come nearer: total variation distance {mean} "
            "on average over {n} positions, {most} at most."
        )
    return sentence.format(n=n, **numbers)
