"""The way through a local model: one pass tells all of it, and the generation's own run draws."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import streamlit as st
from torch import Tensor

from lmcore import LanguageModel
from lmcore.analysis.overview.way import WholeWay, follow
from lmcore.generation.run import GenerationRun
from pages.common import conversation, link, page, session
from pages.common.text import _
from pages.live.overview import overview
from pages.live.sampling_lab.engines import table as engine_table
from pages.stages.generation import runs
from pages.stages.overview import told
from pages.stages.overview.lines import lines
from pages.stages.sampling import knobs

KEY = "overview"
MAX_SEED = 2**32 - 1
N_WAYS = 16  # kept in a session: of the largest model one takes 100 KB
_STAMP = "overview.stamp"  # ((model, ids, position) followed last, a number of its own)
_DRAWN = "overview.drawn"  # ids of the tokens drawn after the prompt, as the address has them
MAX_LINKED = 64  # drawn tokens in an address
_WAYS = "overview.ways"  # (model, ids, position, window, candidate) -> the way, the latest last
_OPEN = "overview.open"  # the page a part was opened on, until the run that opens it
_ANSWERED = "overview.answered"  # the number of the last thing the reader did
_ASKED = "overview.asked"  # the token whose text the scripts asked for last: it is not among the most probable ones


def show() -> None:
    """Show the way, and take what the reader does on it."""
    lm, prompt = session.language_model(), session.require_tokens()
    knobs.remember()
    seed = _remember_seed()
    run = runs.current(lm, prompt)
    run.settings = replace(knobs.settings(lm.config.vocab_size), seed=seed)
    if (stage := st.session_state.pop(_OPEN, None)) is not None:
        page.open_page(stage)
    _remember_drawn(lm, run)
    ids = run.tree.ids(run.node)[: lm.config.context_length]
    chosen = _chosen(lm, len(ids))
    found, logits, stamp = _way(lm, run, ids, chosen)
    if found is None:
        st.error(
            _(
                "The logits at this position contain NaN or infinity, because numbers in the model overflowed. "
                "There is no distribution, and nothing can be drawn."
            )
        )
        link.stop()
    is_last = chosen.position == len(ids) - 1
    if is_last and run.node.parent is None:
        run.tree.know(run.node, logits)
    n_prompt = len(prompt.ids)
    text = _whole_text(run)
    history = {"prompt": ids[: min(n_prompt, chosen.position + 1)], "generated": ids[n_prompt : chosen.position + 1]}
    settings = knobs.for_lab(lm.config.vocab_size)
    named = {ids[chosen.position], *history["generated"], *map(int, settings["logit_bias"])}
    if not is_last:
        named.add(ids[chosen.position + 1])
    asked = st.session_state.get(_ASKED, -1)
    named |= {token for token in (chosen.candidate, asked) if token is not None and 0 <= token < lm.config.vocab_size}
    overview(
        {
            "model": told.model(lm),
            "text": told.text(lm, ids, n_prompt, prompt.n_added, found.window),
            "chosen": asdict(chosen),
            "next": None if is_last else ids[chosen.position + 1],
            "way": told.way(lm, found, chosen.candidate),
            **told.texts(lm, logits, named),
            "history": history,
            "settings": settings,
            "engines": engine_table(only=settings["engine"]),
            "draw": told.drawn(run, seed),
            "take": {"possible": run.node.depth > 0, "same": _taken_ids(lm, run) == ids},
            "links": told.links(_state(settings), chosen, text),
            "answered": st.session_state.get(_ANSWERED, 0),
        },
        logits.numpy(),
        key=KEY,
        stamp=stamp,
        on_act=_act,
    )
    page.snippet(lines(lm, run, ids, chosen.position))


def _remember_seed() -> int:
    seed = link.remember("seed", 0, int)
    if not 0 <= seed <= MAX_SEED:
        link.replace("seed", min(max(seed, 0), MAX_SEED), seed)
    return st.session_state["seed"]


def _remember_drawn(lm: LanguageModel, run: GenerationRun) -> None:
    """Go to the drawn tokens that the address names, where it was just read, and let it name those that are there."""

    def ids_of(text: str) -> tuple[int, ...]:
        ids = tuple(map(int, text.split(",")))
        if len(ids) > MAX_LINKED or not all(0 <= token < lm.config.vocab_size for token in ids):
            raise ValueError(text)
        return ids

    is_read = _DRAWN not in st.session_state
    drawn = link.remember(_DRAWN, None, ids_of)
    if is_read and drawn:
        try:
            run.replay(drawn)
        except ValueError:  # no distribution follows from the logits, or from these settings
            link.replace(_DRAWN, None, link.as_text(drawn))
    if link.replaced(_DRAWN) is not None:
        st.caption(_("The drawn tokens in this link do not fit {name}, so the prompt is shown.").format(name=lm.name))
    tail = run.tree.ids(run.node)[len(run.tree.prompt_ids) :][:MAX_LINKED]
    if tail or link.replaced(_DRAWN) is None:
        st.session_state[_DRAWN] = tuple(tail) or None


def _chosen(lm: LanguageModel, length: int) -> told.Chosen:
    """Return what is followed; what does not fit this model and text is brought to the nearest that does."""
    position = link.remember("position", None, int)
    layer = link.remember("layer", lm.config.n_layers // 2, int)
    head = link.remember("overview.head", told.MEAN, int)
    candidate = link.remember("overview.candidate", None, int)
    if position is not None and not 0 <= position < length:
        position = st.session_state["position"] = None
    if not 0 <= layer < lm.config.n_layers:
        layer = st.session_state["layer"] = min(max(layer, 0), lm.config.n_layers - 1)
    if not told.MEAN <= head < lm.config.n_heads:
        head = st.session_state["overview.head"] = told.MEAN
    if candidate is not None and not 0 <= candidate < lm.config.vocab_size:
        candidate = st.session_state["overview.candidate"] = None
    return told.Chosen(length - 1 if position is None else position, layer, head, candidate)


def _way(
    lm: LanguageModel, run: GenerationRun, ids: list[int], chosen: told.Chosen
) -> tuple[WholeWay | None, Tensor, int]:
    """Return the way, the logits at its end, and a number that is another one for other logits.

    The prompt's positions are read off its one pass, which all pages and sessions share. A drawn token's pass computes
    that token alone. The ways followed last are kept, so that a step back costs no pass. To logits that are no numbers
    there is no way.
    """
    prompt, position = ids[: len(run.tree.prompt_ids)], chosen.position
    kept: OrderedDict[object, WholeWay] = st.session_state.setdefault(_WAYS, OrderedDict())
    window = told.window(len(ids), position)
    key = (lm.name, tuple(ids[: window.stop]), position, window.start, chosen.candidate)
    drawn = run.tree.path(run.node)[position - len(prompt)] if position >= len(prompt) else None
    if key in kept:
        logits = session.logits(prompt)[position] if drawn is None else run.next_logits(drawn)
    else:
        if drawn is None:
            trace, logits = session.trace(prompt), session.logits(prompt)[position]
        else:
            logits, trace = run.traced(drawn, lambda: session.trace(prompt))
        if not told.finite(logits):
            return None, logits, 0
        with session.forward_lock():
            found = follow(lm.model, ids, trace, position, window, chosen.candidate)
        kept[key] = found
        if len(kept) > N_WAYS:
            kept.popitem(last=False)
    kept.move_to_end(key)
    followed, stamp = st.session_state.get(_STAMP, (None, 0))
    if followed != (now := (lm.name, tuple(ids), position)):
        st.session_state[_STAMP] = now, (stamp := stamp + 1)
    return kept[key], logits, stamp


def _whole_text(run: GenerationRun) -> str:
    """Return the prompt with what was drawn after it; bytes that are no characters yet are left out."""
    return session.prompt() + _drawn_text(run)


def _drawn_text(run: GenerationRun) -> str:
    return b"".join(node.token for node in run.tree.path(run.node)).decode("utf-8", "ignore")


def _taken_ids(lm: LanguageModel, run: GenerationRun) -> list[int]:
    """Return the ids of the prompt that `_take_text` would make."""
    if not conversation.is_on():
        return session.encoding(_whole_text(run)).ids
    try:
        rendered = conversation.rendered(lm, conversation.extended(_drawn_text(run)))
    except ValueError:
        return []
    return session.encoding(conversation.RenderedText(rendered.text)).ids


def _take_text(run: GenerationRun) -> None:
    """Make what was drawn a part of the prompt: of its text, or of the assistant's turn."""
    if conversation.is_on():
        conversation.take(conversation.extended(_drawn_text(run)))
    else:
        st.session_state["prompt"] = _whole_text(run)


def _state(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that every part's page is opened with."""
    names = ["model", "lang", "temperature", "top_k", "top_p", "seed"]
    if conversation.is_on():
        names += [conversation.FORM, conversation.CHAT, conversation.TEMPLATE]
    return {name: st.session_state.get(name) for name in names}


# ---- What the reader does -------------------------------------------------------------------------------------------


def _act(act: Any) -> None:
    """Carry out what the scripts tell; it comes from a browser, so what does not fit is left alone."""
    if not isinstance(act, Mapping) or not isinstance(act.get("n"), int):
        return
    st.session_state[_ANSWERED] = act["n"]
    knobs.take(act.get("settings"))
    seed, layer, head, token = (act.get(name) for name in ("seed", "layer", "head", "token"))
    if isinstance(seed, int) and 0 <= seed <= MAX_SEED:
        st.session_state["seed"] = seed
    if isinstance(layer, int) and isinstance(head, int):
        st.session_state.update({"layer": layer, "overview.head": head})
    if isinstance(token, int):
        st.session_state[_ASKED] = token
    candidate = None if act.get("do") in _ELSEWHERE else act.get("candidate")
    if candidate is None or isinstance(candidate, int):
        st.session_state["overview.candidate"] = candidate
    do = _ACTS.get(str(act.get("do")))
    if do is not None:
        do(act)


def _run() -> GenerationRun:
    lm = session.language_model()
    run = runs.current(lm, session.encoding())
    run.settings = replace(knobs.settings(lm.config.vocab_size), seed=st.session_state["seed"])
    return run


def _draw(_act: Mapping[str, Any]) -> None:
    st.session_state["position"] = None
    _run().step()


def _back(_act: Mapping[str, Any]) -> None:
    run = _run()
    st.session_state["position"] = None
    if run.node.parent is not None:
        run.go_to(run.node.parent)


def _restart(_act: Mapping[str, Any]) -> None:
    run = _run()
    st.session_state["position"] = None
    run.go_to(run.tree.root)


def _choose(act: Mapping[str, Any]) -> None:
    position = act.get("position")
    if isinstance(position, int) and position >= 0:
        length = len(_run().tree.ids(_run().node))
        st.session_state["position"] = position if position < length - 1 else None


def _take(_act: Mapping[str, Any]) -> None:
    run = _run()
    _take_text(run)
    st.session_state["position"] = None


def _open(act: Mapping[str, Any]) -> None:
    lm, run = session.language_model(), _run()
    chosen = _chosen(lm, len(run.tree.ids(run.node)))
    to = told.links({}, chosen, "").get(str(act.get("part")))
    if to is None:
        return
    if to["stage"] != "generation" and run.node.depth:
        _take_text(run)  # there the longer text is the prompt; the run stays here
    st.session_state.update(to["set"])
    st.session_state[_OPEN] = to["stage"]


_ELSEWHERE = {"draw", "back", "restart", "choose", "take"}  # after these another token comes next
_ACTS = {"draw": _draw, "back": _back, "restart": _restart, "choose": _choose, "take": _take, "open": _open}
