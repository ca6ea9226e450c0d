"""The words of the lab, in the session's language: its scripts hold none of their own."""

from __future__ import annotations

from typing import Any

from pages.common.text import _


def stage_titles() -> dict[str, str]:
    """Return each stage's name on screen."""
    return {
        "logit_bias": _("Logit bias"),
        "repetition_penalty": _("Repetition penalty"),
        "frequency_penalty": _("Frequency penalty"),
        "presence_penalty": _("Presence penalty"),
        "temperature": _("Temperature"),
        "top_n_sigma": _("Top-nσ"),
        "top_k": _("Top-k"),
        "top_p": _("Top-p"),
        "min_p": _("Min-p"),
        "typical_p": _("Typical"),
        "epsilon_cutoff": _("Epsilon"),
        "eta_cutoff": _("Eta"),
    }


def stage_helps() -> dict[str, str]:
    """Return what each stage does, in a sentence."""
    return {
        "logit_bias": _("Adds a number to the logits of chosen tokens."),
        "repetition_penalty": _("Divides positive logits of tokens already seen by r, multiplies negative ones by r."),
        "frequency_penalty": _("Subtracts an amount from a token's logit for each time it was seen."),
        "presence_penalty": _("Subtracts an amount once from the logit of every token already seen."),
        "temperature": _("Divides the logits by T: below 1 sharper, above 1 flatter, 0 greedy."),
        "top_n_sigma": _("Keeps logits within n standard deviations of the largest."),
        "top_k": _("Keeps the k most probable tokens."),
        "top_p": _("Keeps the most probable tokens until they add up to p; the one that crosses p stays."),
        "min_p": _("Keeps tokens at least m times as probable as the most probable one."),
        "typical_p": _("Keeps tokens whose surprisal is nearest to the entropy until they add up to p."),
        "epsilon_cutoff": _("Keeps tokens of at least this probability."),
        "eta_cutoff": _("Keeps tokens above a cutoff that falls as the entropy rises."),
    }


def _allowed() -> dict[str, str]:
    unit = _("a number from 0 to 1")
    cutoff = _("a number of 0 or more, and less than 1")
    return {
        "repetition_penalty": _("a number more than 0"),
        "frequency_penalty": _("any number"),
        "presence_penalty": _("any number"),
        "temperature": _("a number of 0 or more"),
        "top_n_sigma": _("a number of 0 or more"),
        "top_k": _("a whole number of 0 or more"),
        "top_p": unit,
        "min_p": unit,
        "typical_p": unit,
        "epsilon_cutoff": cutoff,
        "eta_cutoff": cutoff,
    }


def labels() -> dict[str, Any]:
    """Return every text of the lab; what stands in braces is filled in by its scripts."""
    return {
        "titles": stage_titles(),
        "helps": stage_helps(),
        "allowed": _allowed(),
        "refused": _("{stage} takes {allowed}."),
        "stages": _("Stages, in the order they run"),
        "move": _("Move {stage}: drag, or press the up and down keys"),
        "moved": _("{stage} is now number {place} of {of}."),
        "off": _("off"),
        "keeps": _("keeps {kept} of {of}, removes {mass}"),
        "keeps_all": _("keeps all"),
        "edits": _("tokens changed: {count}"),
        "heats": {"sharper": _("sharper than T = 1"), "flatter": _("flatter than T = 1")},
        "bias_hint": _("set an amount where a token is shown"),
        "bias_help": _("a number to add to its logit, or -inf to ban it"),
        "ban": _("Ban"),
        "ban_help": _("A logit bias of -inf: this token can never come"),
        "lacks": _("this engine has no such stage"),
        "engine": _("Rules of"),
        "engine_help": _("Its stages, their order and its rules at the boundaries; the knobs stay where they are"),
        "defaults": _("Its defaults"),
        "defaults_help": _("Set every knob to this engine's default"),
        "order_changed": _("order changed"),
        "against": _("beside"),
        "against_help": _("Another engine under the same knobs: green marks on the bars, its numbers under these"),
        "find": _("Find a token"),
        "find_help": _("Its id, or its text if it is among the most probable"),
        "notes": {
            "nothing_seen": _("no token has been seen, so nothing changes"),
            "greedy": _("T = 0 is greedy: the most probable token alone"),
            "greedy_tie": _("T = 0 is greedy: of {count} equal tokens the lowest id"),
            "beyond": _("k = {k} is more than the {size} tokens there are, so it is off"),
            "ties_kept": _("{count} more are equal to the last of the {k}"),
            "clamped": _("k = {k} is clamped to the {size} tokens there are"),
            "top_p_zero": _("p = 0 keeps one token"),
            "one_kept": _("no token qualifies, so the most probable stays"),
        },
        "columns": {
            "token": _("Token"),
            "id": _("id"),
            "logit": _("logit"),
            "was": _("T = 1"),
            "now": _("final"),
        },
        "bars": _("The most probable tokens"),
        "row": _("{token}, id {id}, logit {logit}, at T = 1 {was}, final {now}"),
        "rest": _("{n} others, {kept} kept"),
        "count": _("Bars"),
        "log": _("Logarithmic bars"),
        "pin": _("Pin"),
        "pin_help": _("Keep this distribution in view, to compare with"),
        "pinned": _("pinned: {value}"),
        "distance": _("total variation {d}"),
        "reset": _("All off"),
        "bits": _("{n} bits"),
        "of": _("of {size}"),
        "no_seed": _("the seed has no effect"),
        "tiles": {
            "entropy": _("Entropy"),
            "effective": _("Effective vocabulary"),
            "candidates": _("Candidates"),
            "removed": _("Removed mass"),
        },
        "facts": _("id {id} · rank {rank} · logit {logit}"),
        "removed": _("removed"),
        "bias": _("Logit bias"),
        "problems": {
            "overflow": _("These penalties and biases leave no token, or overflow: use smaller ones."),
            "zero_temperature": _("This engine refuses temperature 0 when sampling: use more than 0, or other rules."),
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
