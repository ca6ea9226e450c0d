"""What stages did that look further than one distribution: the text that came before, chance, and a state."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
import streamlit as st

from lmcore import Reshaped
from lmcore.distribution import top
from lmcore.sampling import History, registry
from lmcore.sampling.stages.dry import Match, repeated
from pages.common.text import _, visible
from pages.figures.theme import fmt_probability
from pages.live.generated_text import TextToken, generated_text
from pages.live.sampling_lab.labels import stage_titles

Name = Callable[[int], bytes | str]
_TOKENS = 8  # of a table
_MATCHES = 4  # shown in the text, the longest
_AROUND = 3  # tokens in front of a stretch and behind it


def show(result: Reshaped, history: History, token: Name, key: str) -> None:
    """Show what DRY found, the branches of chance, and the states after each possible token, where there are any.

    Args:
        result: What the settings made of the logits.
        history: The tokens before.
        token: The text of a token, by id.
        key: Unique on the page.
    """
    if any(step.name == "dry" for step in result.steps):
        _repetition(result, history, token, key)
    if len(result.ways) > 1:
        _branches(result, token, key)
    if states(result):
        _next_states(result, token, key)


def states(result: Reshaped, token_id: int | None = None) -> dict[str, str]:
    """Return what stages such as mirostat carry into a token, or, with its id, out of it, by the stage's name."""
    carried = result.state if token_id is None else result.next_state(token_id)
    found = {}
    for step in result.steps:
        if (start := registry.get(step.name).start) is not None:
            value = carried.get(step.name, start(result.settings))
            numbers = value if isinstance(value, tuple) else (value,)
            found[step.name] = ", ".join(f"{number:.4f}" for number in numbers)
    return found


def _repetition(result: Reshaped, history: History, token: Name, key: str) -> None:
    """Show where the latest tokens came before, in the text, and what followed them there."""
    found = sorted(repeated(result.settings, history), key=lambda match: -match.length)
    if not found:
        return
    settings, seen, n = result.settings, history.all, len(history.all)
    shown = found[:_MATCHES]
    stretches = set(range(n - found[0].length, n))
    lowered: dict[int, float] = {}
    for match in shown:
        stretches |= set(range(match.place - match.length + 1, match.place + 1))
        power = settings.dry_base ** (match.length - settings.dry_allowed_length)
        lowered[match.place + 1] = settings.dry_multiplier * power
    tokens: list[TextToken] = []
    before = -1
    for place in _places(shown, n):
        if place != before + 1:
            tokens.append(TextToken("…".encode(), kind="prompt"))
        before, name = place, token(seen[place])
        text = name if isinstance(name, bytes) else name.encode("utf-8", "replace")
        if place in lowered:
            amount = f"−{lowered[place]:.2f}"
            hint = _("its logit is lowered by {amount}").format(amount=f"{lowered[place]:.4f}")
            tokens.append(TextToken(text, amount, 0.5 * (place in stretches), hint, "taken"))
        else:
            tokens.append(TextToken(text, "", 0.5, "", "drawn" if place in stretches else "prompt"))
    generated_text(tokens, key=f"{key}.dry", label=_("DRY: where the latest tokens came before, and what followed"))
    st.caption(
        _(
            "DRY. Blue: the latest tokens, at the end, and where they came before. Dashed line: what followed there; "
            "below it, by how much its logit is lowered."
        )
    )


def _places(found: Sequence[Match], n: int) -> list[int]:
    """Return the places of the text that are shown: around each stretch, and the latest tokens."""
    shown = set(range(max(n - found[0].length - _AROUND, 0), n))
    for match in found:
        shown |= set(range(max(match.place - match.length + 1 - _AROUND, 0), min(match.place + 2 + _AROUND, n)))
    return sorted(shown)


def _branches(result: Reshaped, token: Name, key: str) -> None:
    """Show the distribution of each branch, with its weight, and their mixture, which is drawn from."""
    ids = _likely(result)
    titles = stage_titles()
    columns: dict[str, list[str]] = {_("Token"): [_label(token, each) for each in ids]}
    for way in result.ways:
        said = [
            (_("{stage} acts") if step.kept < len(step.before) else _("{stage} does nothing")).format(
                stage=titles[step.name]
            )
            for step in way.steps
            if registry.get(step.name).by_chance
        ]
        if way.is_retry:
            said.append(_("drawn again, masked"))
        elif any(each.is_retry for each in result.ways):
            said.append(_("allowed at once"))
        probs = way.final.dense()
        columns[f"{fmt_probability(way.weight)}: {', '.join(said)}"] = [fmt_probability(float(probs[i])) for i in ids]
    columns[_("mixture, drawn from")] = [fmt_probability(float(result.probs[each])) for each in ids]
    st.dataframe(pd.DataFrame(columns), hide_index=True, key=f"{key}.branches")
    st.caption(_("Chance: each branch with its probability; a token is drawn from the mixture of them."))


def _next_states(result: Reshaped, token: Name, key: str) -> None:
    """Show what each stage's state would be after each possible token."""
    titles, now = stage_titles(), states(result)
    ids = _likely(result)
    following = [states(result, each) for each in ids]
    carried = "; ".join(f"{titles[name]} {value}" for name, value in now.items())
    columns = {
        _("Token"): [_label(token, each) for each in ids],
        _("probability"): [fmt_probability(float(result.probs[each])) for each in ids],
        **{titles[name]: [each[name] for each in following] for name in now},
    }
    st.dataframe(pd.DataFrame(columns), hide_index=True, key=f"{key}.states")
    st.caption(_("State: now {now}; in the table, after each token that could be drawn.").format(now=carried))


def _likely(result: Reshaped) -> list[int]:
    """Return the most probable tokens of those that can be drawn."""
    return [each for each in top(result.probs, _TOKENS).ids.tolist() if result.probs[each] > 0]


def _label(token: Name, token_id: int) -> str:
    return f"{visible(token(token_id))} · {token_id}"
