"""The words of the lab, in the session's language: its scripts hold none of their own."""

from __future__ import annotations

from collections import Counter
from typing import Any

from lmcore.sampling import NOTES, STAGES, Field, Note, Stage
from lmcore.sampling.registry import all_stages
from lmcore.sampling.stages import chance, dry, memory
from pages.common.text import _, readable
from pages.live.sampling_lab.engines import limit_of
from pages.live.sampling_lab.generated import off


def stage_titles() -> dict[str, str]:
    """Return each stage's name on screen."""
    return {stage.name: _said(stage, stage.title) for stage in all_stages()}


def _said(stage: Stage, text: str) -> str:
    """Return a text of lmcore's stages in the session's language, and one of a registered stage as it is written."""
    return _(text) if text and stage.name in STAGES else readable(text)


def translated_note(note: Note) -> str:
    """Return a step's remark in the session's language."""
    return _(note.template).format(**note.values) if note.template in NOTES else readable(note)


def stages(vocab_size: int) -> list[dict[str, Any]]:
    """Return every stage as the lab's scripts take it, in the default order."""
    shared = Counter(field.name for stage in all_stages() for field in stage.fields)
    return [
        {
            "name": stage.name,
            "title": _said(stage, stage.title),
            "help": _said(stage, stage.help),
            "rare": stage.rare,
            "needs": _needs(stage),
            "fields": [_field(stage, field, vocab_size) for field in stage.fields if shared[field.name] == 1],
        }
        for stage in all_stages()
    ]


def _field(stage: Stage, field: Field, vocab_size: int) -> dict[str, Any]:
    limit = limit_of(field.name, field.range)
    return {
        "name": field.name,
        "title": _said(stage, field.title),
        "kind": "number" if type(field) is Field else type(field).__name__.lower(),
        "off": off(field.name),
        "on": field.on,
        "stops": list(field.stops(vocab_size)),
        "whole": field.whole,
        "empty": ("" if field.off is not None else _("off") if field.zero_is_off else _("all")),
        **limit,
    }


def _needs(stage: Stage) -> str:
    """Say what a stage looks at besides this position."""
    needs = []
    if stage.by_chance:
        needs.append(_("chance: shown is the mixture of what can happen"))
    if stage.start is not None:
        needs.append(_("carries a state from token to token: shown at a text's beginning"))
    return " · ".join(needs)


def labels() -> dict[str, Any]:
    """Return every text of the lab; what stands in braces is filled in by its scripts."""
    return {
        "titles": stage_titles(),
        "refused": _("{stage} must be {allowed}."),
        "stages": _("Stages, in the order they run"),
        "move": _("Move {stage}: drag, or press the up and down keys"),
        "moved": _("{stage} is now number {place} of {of}."),
        "off": _("off"),
        "keeps": _("keeps {kept} of {of}, removes {mass}"),
        "keeps_all": _("keeps all"),
        "edits": _("tokens changed: {count}"),
        "heats": {"sharper": _("sharper than T = 1"), "flatter": _("flatter than T = 1")},
        "bias_hint": _("set an amount at any token shown"),
        "bias_help": _("a number to add to its logit, or -inf to ban it"),
        "ban": _("Ban"),
        "ban_help": _("A logit bias of -inf: this token can never be drawn"),
        "lacks": _("this engine has no such stage"),
        "more": _("More stages ({n})"),
        "fewer": _("Fewer stages"),
        "on_release": _("computed by the server when a control is let go"),
        "waiting": _("being computed"),
        "window_none": _("The window is 0, which counts no token in {engine}."),
        "engine": _("Rules of"),
        "engine_help": _("Uses its stages, their order and its boundary rules. The settings do not change."),
        "defaults": _("Its defaults"),
        "defaults_help": _("Set every setting to this engine's default"),
        "order_changed": _("order changed"),
        "against": _("compared with"),
        "against_help": _(
            "Another engine with the same settings: green marks on the bars, and its numbers below these"
        ),
        "find": _("Find a token"),
        "find_help": _("Its id, or its text if it is among the most probable"),
        "notes": {
            "nothing_seen": _("no token has been seen, so nothing changes"),
            "dynamic": _("the entropy makes T {t}"),
            "greedy": _("T = 0 is greedy: only the most probable token"),
            "greedy_tie": _("T = 0 is greedy: of {count} equal tokens the lowest id"),
            "beyond": _("k = {k} is more than the {size} tokens of the vocabulary, so it is off"),
            "ties_kept": _("{count} more are equal to the last of the {k}"),
            "clamped": _("k = {k} is limited to the {size} tokens of the vocabulary"),
            "top_p_zero": _("p = 0 keeps one token"),
            "one_kept": _("no token qualifies, so the most probable stays"),
            "no_match": _(dry.NO_MATCH),
            "repeats": _(dry.REPEATS),
            "too_few": _(chance.TOO_FEW),
            "xtc_acts": _(chance.ACTS).replace("{probability:g}", "{p}"),
            "mu": _(memory.MU).replace("{mu:.4f}", "{t}"),
            "target": _(memory.TARGET).replace("{target:.4f}", "{t}"),
        },
        "columns": {
            "token": _("Token"),
            "id": _("id"),
            "logit": _("logit"),
            "was": _("T = 1"),
            "now": _("final"),
        },
        "bars": _("The most probable tokens"),
        "empty": _("The distribution is on its way."),
        "row": _("{token}, id {id}, logit {logit}, at T = 1 {was}, final {now}"),
        "rest": _("{n} others, {kept} kept"),
        "count": _("Bars"),
        "log": _("Logarithmic bars"),
        "pin": _("Pin"),
        "pin_help": _("Keep this distribution in view for comparison"),
        "pinned": _("pinned: {value}"),
        "distance": _("total variation {d}"),
        "reset": _("All off"),
        "bits": _("{n} bits"),
        "of": _("of {size}"),
        "no_seed": _("the seed has no effect"),
        "tiles": {
            "entropy": _("Entropy"),
            "effective": _("Effective candidates"),
            "candidates": _("Candidates"),
            "removed": _("Removed mass"),
        },
        "facts": _("id {id} · rank {rank} · logit {logit}"),
        "removed": _("removed"),
        "bias": _("Logit bias"),
        "problems": {
            "overflow": _("These penalties and biases leave no token, or overflow. Use smaller ones."),
            "zero_temperature": _(
                "This engine refuses temperature 0 when sampling. Use more than 0, or the rules of another engine."
            ),
            "refused": _("{engine} refuses {stage} {value}: it takes {allowed}."),
        },
        "cumulative": _("Cumulative probability"),
        "falling": _("Probability by rank"),
        "now": _("now"),
        "heat": _("Probability against temperature"),
        "heat_axis": _("temperature T"),
        "heat_reading": _("T = {t}: {tokens}"),
        "rank": _("rank, of all tokens"),
        "reading": _("rank {rank}: {token} · {p} · sum {sum}"),
        "reading_none": _("rank {rank}: no candidate"),
    }
