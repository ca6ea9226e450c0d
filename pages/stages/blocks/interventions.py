"""Interventions: switch parts off, swap tokens, and see what the model then says next."""

from __future__ import annotations

import pandas as pd
import streamlit as st
from torch import Tensor

import lmcore
from lmcore import Encoding, LanguageModel
from lmcore.analysis import each_component, effects_alone, next_probs
from lmcore.distribution import softmax, top, total_variation
from lmcore.worker import Worker, each_of
from pages.common import page, session, widgets
from pages.common.text import _, ngettext, visible
from pages.figures.blocks import interventions as figures
from pages.figures.labels import token_labels, vocabulary_label
from pages.figures.theme import fmt_count
from pages.live.component_grid import BlockSwitches, Switch, component_grid
from pages.stages.blocks import intervention_list
from pages.stages.blocks.chosen import TextPosition

_SWEEP = "interventions.sweep"  # (model, text up to the position) and the reading of every part alone
_EDITED = "interventions.result"  # what was computed last: (model, text, position, interventions) and its distribution
_PRESSED = "interventions.pressed"  # a switch of the grid was pressed: the whole page is to run, not the grid alone
_REFRESH = 1.0  # seconds between two looks at the sweep


def show(lm: LanguageModel, found: Encoding) -> None:
    """Draw the view."""
    chosen = intervention_list.current(lm.config, len(found.ids))
    controls, picture = st.columns([2, 3], gap="large")  # the switches are a picture too
    with controls:
        position = widgets.position_picker(label=_("Choose a token: the prediction after it is shown"))
        place = TextPosition(lm, found, position)
        sweep = _sweep(place)
        st.fragment(_grid, run_every=_REFRESH if sweep is not None and sweep.running else None)(place, chosen)
        if len(found.ids) > 1:
            _swap(found)
        count = widgets.slider("interventions.n", _("Tokens shown"), 3, 20, 6)
    with picture:
        _chips(chosen, found)
        intervention_list.say_dropped()
        before = softmax(session.logits()[position])
        after = _after(place, chosen) if chosen else before
        _difference(place, chosen, before, after, count)
    _table(place, chosen, before, after, count)
    page.snippet(_snippet(place, chosen))


def _after(place: TextPosition, chosen: list[str]) -> Tensor:
    key = (place.lm.name, tuple(place.found.ids), place.position, tuple(chosen))
    if st.session_state.get(_EDITED, (None,))[0] != key:
        with st.spinner(_("Running the model with these changes")), session.forward_lock():
            probs = next_probs(place.lm, place.found.ids, place.position, chosen)
        st.session_state[_EDITED] = (key, probs)
    return st.session_state[_EDITED][1]


# The grid of switches


def _key(place: TextPosition) -> tuple[str, tuple[int, ...]]:
    """Return the model and the text up to the position: what the effects depend on."""
    return place.lm.name, tuple(place.found.ids[: place.position + 1])


def _sweep(place: TextPosition) -> Worker[tuple[str, float]] | None:
    """Return the reading of every part for this place; a small model's starts by itself."""
    key, sweep = st.session_state.get(_SWEEP, (None, None))
    if key == _key(place):
        return sweep
    if sweep is not None:
        sweep.stop()
        del st.session_state[_SWEEP]
    return _start(place) if place.lm.name in lmcore.builtin.names() else None


def _start(place: TextPosition) -> Worker[tuple[str, float]]:
    lm, ids, position = place.lm, place.found.ids, place.position
    parts = each_component(lm.config)
    sweep = Worker(each_of(lambda: effects_alone(lm, ids, position, parts), session.forward_lock()), total=len(parts))
    if lm.name in lmcore.builtin.names():
        sweep.join(1.0)  # a small model is done before anyone would read a progress bar
    st.session_state[_SWEEP] = (_key(place), sweep)
    return sweep


def _measure(place: TextPosition) -> None:
    _start(place)
    st.session_state[_PRESSED] = True


def _grid(place: TextPosition, chosen: list[str]) -> None:
    """Draw the switches; runs by itself again and again while their effects are measured."""
    # The second condition: a rerun asked for while the grid's own is under way can come to nothing.
    if st.session_state.pop(_PRESSED, False) or st.session_state[intervention_list.KEY] != chosen:
        st.rerun()
    config = place.lm.config
    key, sweep = st.session_state.get(_SWEEP, (None, None))
    effects: dict[str, float] = dict(sweep.items) if key == _key(place) else {}
    most = max(effects.values(), default=0.0) or 1.0
    parts = [*(f"attn.head.{head}" for head in range(config.n_heads)), "attn", "mlp"]
    rows = [
        BlockSwitches(
            str(block),
            Switch(f"blocks.{block}", f"blocks.{block}", f"blocks.{block}" in chosen),
            [_cell(f"blocks.{block}.{part}", chosen, effects, most) for part in parts],
        )
        for block in range(config.n_layers)
    ]
    st.caption(
        _("Press to switch off a head, the attention or the MLP. Press a row's number to switch off the whole block.")
    )
    component_grid(
        [*map(str, range(config.n_heads)), "attn", "mlp"],
        rows,
        key="interventions.grid",
        label=_("Switches: one row for each block; one column for each head, then the attention and the MLP"),
        on_choose=_press,
    )
    if key != _key(place):
        if place.lm.name not in lmcore.builtin.names():
            st.button(
                _("Measure each of the {n}").format(n=len(each_component(config))),
                key="interventions.measure",
                on_click=_measure,
                args=(place,),
                width="stretch",
            )
        return
    if sweep.running:
        st.progress(len(sweep.items) / sweep.total, f"{len(sweep.items)} / {sweep.total}")
        st.button(_("Stop"), key="interventions.stop", on_click=sweep.stop, width="stretch")
    page.failure(sweep.error)
    if effects:
        strongest = max(effects, key=effects.__getitem__)
        st.caption(
            _(
                "Colour: how much the distribution changes (total variation distance) when only this part is "
                "off. The darkest, {part}, changes it by {distance}."
            ).format(part=strongest, distance=f"{effects[strongest]:.4f}")
        )


def _cell(name: str, chosen: list[str], effects: dict[str, float], most: float) -> Switch:
    effect = effects.get(name)
    hint = name if effect is None else f"{name}: {effect:.4f}"
    return Switch(name, hint, name in chosen, None if effect is None else effect / most)


def _press(intervention: str) -> None:
    intervention_list.toggle(intervention)
    st.session_state[_PRESSED] = True


# What is changed, and what comes of it


def _swap(found: Encoding) -> None:
    labels = token_labels(found.tokens)
    places = range(len(labels))
    left, right = st.columns(2)
    with left:
        own = min(found.n_added, places[-1])  # the first token of the text: before it may stand a <bos>
        first = widgets.select("interventions.first", _("Token"), places, own, format_func=labels.__getitem__)
    with right:
        second = widgets.select("interventions.second", _("and"), places, places[-1], format_func=labels.__getitem__)
    swap = f"swap.{min(first, second)}.{max(first, second)}"
    st.button(
        _("Swap"),
        key="interventions.swap",
        on_click=intervention_list.toggle,
        args=(swap,),
        disabled=first == second,
        width="stretch",
    )


def _chips(chosen: list[str], found: Encoding) -> None:
    """Show every change with a cross to take it back, and the steps back and forth."""
    with st.container(horizontal=True, vertical_alignment="center", key="interventions-chips"):
        if not chosen:
            st.markdown(_("Nothing is changed yet. Press a cell of the grid, or swap two tokens."))
        for intervention in chosen:
            st.button(
                f"{_spoken(intervention, found)} ✕",
                key=f"interventions.chip.{intervention}",
                on_click=intervention_list.toggle,
                args=(intervention,),
                help=_("Undo: {name}").format(name=intervention),
            )
    with st.container(horizontal=True, key="interventions-steps"):
        for name, icon, act, possible in (
            (_("Undo"), ":material/undo:", intervention_list.undo, intervention_list.can_undo()),
            (_("Redo"), ":material/redo:", intervention_list.redo, intervention_list.can_redo()),
        ):
            st.button(name, key=f"interventions.{act.__name__}", icon=icon, on_click=act, disabled=not possible)
        st.button(
            _("Clear all"),
            key="interventions.clear",
            on_click=intervention_list.change,
            args=([],),
            disabled=not chosen,
            icon=":material/close:",
        )


def _spoken(intervention: str, found: Encoding) -> str:
    """Say an intervention in words."""
    kind, first, *rest = intervention.split(".")
    if kind == "swap":
        return _("swapped {first} ⇄ {second}").format(first=first, second=rest[0])
    if rest[-2:-1] == ["head"]:
        return _("block {block} · head {head}").format(block=first, head=rest[-1])
    if rest[-2:-1] == ["expert"]:
        return _("block {block} · expert {expert}").format(block=first, expert=rest[-1])
    part = {"attn": _("attention"), "mlp": "MLP"}.get(rest[0]) if rest else None
    return _("block {block} · {part}").format(block=first, part=part) if part else _("block {n}").format(n=first)


def _difference(place: TextPosition, chosen: list[str], before: Tensor, after: Tensor, count: int) -> None:
    distance = total_variation(before, after).item()
    left, middle, right = st.columns([3, 2, 2])
    left.metric(
        _("Total variation distance"),
        f"{distance:.4f}",
        help=_("Half the sum of the absolute changes in probability: 0 is no change, 1 is no overlap."),
    )
    gained, lost = _("Largest increase, pp"), _("Largest decrease, pp")
    for column, name, change in ((middle, gained, after - before), (right, lost, before - after)):
        token = int(change.argmax())
        if chosen and change[token] > 0:
            sign = "+" if column is middle else "−"
            column.metric(name, f"{sign}{100 * change[token].item():.2f}", help=_("In percentage points."))
            column.text(_name(place, token))
    ids = _shown(before, after, count)
    page.figure(
        figures.before_and_after(
            [_name(place, i) for i in ids],
            before[ids].numpy(),
            after[ids].numpy() if chosen else None,
            (_("Original model"), _("With these changes")),
            _("the other {n} tokens").format(n=fmt_count(len(before) - len(ids))),
        ),
        "before-after",
        _("Bars: the probability of the most probable next tokens, in the original model and with the changes."),
    )
    if not chosen:
        return
    st.caption(
        ngettext(
            "Grey is the original model. Blue is the same model, run once with {n} change; its weights are not "
            "changed.",
            "Grey is the original model. Blue is the same model, run once with {n} changes; its weights are "
            "not changed.",
            len(chosen),
        ).format(n=len(chosen))
    )


def _shown(before: Tensor, after: Tensor, count: int) -> list[int]:
    """Return the most probable tokens of both, in the order of the larger of their two probabilities."""
    ids = {int(token) for probs in (before, after) for token in top(probs, count).ids}
    return sorted(ids, key=lambda token: -max(before[token].item(), after[token].item()))


def _table(place: TextPosition, chosen: list[str], before: Tensor, after: Tensor, count: int) -> None:
    """Show the most probable tokens and, when something is changed, those that gained and lost most."""
    ids = _shown(before, after, count)
    probs = {_("P before"): before}
    if chosen:
        change = after - before
        moved = {int(token) for towards in (change, -change) for token in top(towards, 10).ids}
        ids = sorted(moved.union(ids), key=lambda token: -change[token].item())
        probs |= {_("P after"): after, _("Change"): change}
        st.subheader(_("Largest increases and decreases"), anchor=False)
    tokens = [visible(place.lm.tokenizer.token_bytes(i)) for i in ids]
    columns = {name: values[ids].numpy() for name, values in probs.items()}
    frame = pd.DataFrame({_("Token"): tokens, "id": ids, **columns})
    page.numbers_table(frame, "interventions", dict.fromkeys(probs, "probability"))


def _name(place: TextPosition, token: int) -> str:
    return vocabulary_label(token, place.lm.tokenizer.token_bytes(token))


def _snippet(place: TextPosition, chosen: list[str]) -> str:
    return (
        "import lmcore.analysis\n"
        f"lm = lmcore.load({place.lm.name!r})\n"
        f"ids = lm.tokenizer.encode({place.found.text!r}).ids\n"
        f"edits = lmcore.analysis.edits_of({chosen}, lm.config, len(ids))\n"
        f"before, after = (lmcore.distribution.softmax(lm(ids, edits=e)[{place.position}]) for e in (None, edits))\n"
        "print(lmcore.distribution.total_variation(before, after).item())\n"
        "print(lmcore.distribution.top(after - before, 5), lmcore.distribution.top(before - after, 5))"
    )
