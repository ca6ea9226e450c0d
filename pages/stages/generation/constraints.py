"""Constraints: what the text may be, what the mask took from each token, and two ways to obey it."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st
import torch

from lmcore import Encoding, LanguageModel, SamplingSettings, builtin, distribution
from lmcore.constraints import Constraint, ConstraintRefused, Masking
from lmcore.constraints.constraint import KINDS, MAX_TEXT, Kind
from lmcore.generation.run import GenerationRun
from lmcore.generation.tree import Node
from lmcore.sampling import registry
from pages.common import link, page, widgets
from pages.common.text import _, markdown_literal, visible
from pages.figures.generation.side_by_side import side_by_side
from pages.figures.theme import fmt_probability
from pages.stages.generation import chosen as unconstrained

KIND, TEXT, RETRIES = "constraint", "constraint.text", "constraint.retries"
_OFF = "none"
_LAST = "constraint.last"  # the constraint that the view was last drawn with
_BARS = 7  # tokens drawn as bars
_FACTS = 120  # characters of a constraint that are repeated in a sentence


def remember() -> None:
    """Take the constraint from the address, where it is not known yet."""
    link.remember(KIND, _OFF, {name: name for name in (_OFF, *KINDS)}.__getitem__)
    link.remember(TEXT, "")
    link.remember(RETRIES, False, {"1": True, "0": False}.__getitem__)


def chosen() -> Constraint | None:
    """Return the constraint the reader has set; None for anything."""
    link.take_over(KIND, TEXT, RETRIES)
    kind = next((each for each in KINDS if each == st.session_state.get(KIND)), None)
    if kind is None:
        return None
    return Constraint(kind, st.session_state.get(TEXT, "")[:MAX_TEXT], bool(st.session_state.get(RETRIES)))


def under(settings: SamplingSettings) -> Constraint | None:
    """Return the constraint as it holds under settings: a stage with a state has the mask come before every draw."""
    constraint = chosen()
    if constraint is None or not constraint.retries or not stateful(settings):
        return constraint
    return replace(constraint, retries=False)


def stateful(settings: SamplingSettings) -> bool:
    """Whether a stage is on that carries a state from token to token."""
    return any(registry.get(name).start is not None for name in settings.active)


def controls(lm: LanguageModel, prompt: Encoding, run: GenerationRun) -> None:
    """Show what sets the constraint; another one begins at the prompt, and what was drawn before is kept."""
    remember()
    before = chosen()
    with st.container(horizontal=True, gap="small"):
        for number, (title, of_kind, text) in enumerate(_examples(lm, prompt.text)):
            st.button(
                title,
                key=f"constraint.example.{number}",
                type="primary" if before and (before.kind, before.text) == (of_kind, text) else "secondary",
                on_click=link.assign,
                args=({KIND: of_kind, TEXT: text},),
            )
    titles = kinds()
    kind = widgets.select(KIND, _("Constraint"), list(titles), _OFF, format_func=titles.__getitem__)
    if kind != _OFF:
        hints = {
            "regex": _("The whole text after the prompt has to match. Rust's syntax, without look-around."),
            "json_schema": _("The text is one JSON value that fits; a space follows each comma and colon."),
            "choices": _("One per line. Spaces at the ends count."),
        }
        widgets.text(TEXT, titles[kind], max_chars=MAX_TEXT, help=hints[kind], height=104)
        widgets.toggle(
            RETRIES,
            _("Draw first, then mask"),
            help=_(
                "As llama.cpp does: the mask is applied when a token is refused, and another one is drawn. When off, "
                "the mask comes before every draw, as in vLLM."
            ),
        )
    if under(run.settings) != chosen():
        st.caption(_("A stage that carries a state is on, so the mask comes before every draw."))
    if (now := chosen()) != st.session_state.get(_LAST, now):
        run.go_to(run.tree.root)
    st.session_state[_LAST] = now
    _make_ready(run, under(run.settings))


def _make_ready(run: GenerationRun, constraint: Constraint | None) -> None:
    """Have the first mask made; with a vocabulary of 262,144 tokens the first one of all takes two seconds."""
    run.constraint = constraint
    with st.spinner(_("Finding the allowed tokens …")):
        _ready = run.refusal


def kinds() -> dict[str, str]:
    """Return the kinds of constraints by name, and none."""
    return {
        _OFF: _("none: any text"),
        "regex": _("regular expression"),
        "json_schema": _("JSON schema"),
        "choices": _("one of these texts"),
    }


def note(run: GenerationRun) -> None:
    """Say beside the text that a constraint holds, and offer to take it away."""
    remember()
    if (constraint := under(run.settings)) is None:
        return
    _make_ready(run, constraint)
    text = markdown_literal(visible(constraint.text[:_FACTS])).replace("␣", " ")
    st.caption(_("The text is constrained: {kind} {text}").format(kind=kinds()[constraint.kind], text=text))
    st.button(
        _("Without a constraint"),
        key="constraint.off",
        icon=":material/lock_open:",
        on_click=link.assign,
        args=({KIND: _OFF},),
    )


def say_free() -> None:
    """Say, where a constraint is set, that it does not hold for the texts shown."""
    remember()
    if chosen() is not None:
        st.caption(_("The constraint holds for the text token by token, not for the texts of this view."))


def why(refused: ConstraintRefused | None) -> str:
    """Return why no token can follow under the constraint, in a sentence."""
    if refused is None:
        return ""
    if refused.reason == "left":
        return _("The text so far does not fit the constraint: go back to the prompt, or to a token that fits.")
    detail = markdown_literal(visible(refused.detail)).replace("␣", " ")
    if refused.reason == "grammar":
        return _("The constraint cannot be used: {detail}.").format(detail=detail)
    return _("Under this constraint no token can follow: {detail}.").format(
        detail=detail or _("the model has no token that ends a text")
    )


def picture(run: GenerationRun, node: Node | None, top_n: int) -> None:
    """Draw what the mask did to the distribution of a node, or with None of the token that comes next."""
    if node is None and (run.end or run.running):
        return
    found = run.masking(node)
    if found is None:
        st.caption(_("No constraint holds for this token. Choose one on the left, or an example."))
        unconstrained.show(run, node, top_n)
        return
    shown = _order(found, node)
    labels = [f"{visible(run.tree.lm.tokenizer.token_bytes(i))} · {i}" for i in shown]
    labels.append(_("the other {n:,} tokens").format(n=len(found.allowed) - len(shown)))
    series = {_("unmodified model (T = 1)"): found.model, _("mask first"): found.masked.probs}
    if not found.stateful:
        series[_("draw, then try again")] = found.retried
    ids = torch.tensor(shown)
    rows = {}
    for name, probs in series.items():
        kept = probs[ids].tolist()
        rows[name] = [*kept, _without_dust(1 - sum(kept))]
    page.figure(
        side_by_side(
            labels,
            rows,
            axis=_("probability"),
            chosen=None if node is None else shown.index(node.token_id),
            removed=[place for place, token_id in enumerate(shown) if not found.allowed[token_id]],
        ),
        "generation.masking",
        _("Grey and hatched: the constraint does not allow the token."),
    )
    st.markdown(" ".join(_facts(run, found)))


def _without_dust(share: float) -> float:
    """Return a share of 1 without what rounding leaves where it is 0."""
    return share if share > 1e-12 else 0.0


def _order(found: Masking, node: Node | None) -> list[int]:
    """Return the tokens to draw: the model's own best, then those that can be drawn, and the one that was."""
    own = distribution.top(found.model, 3).ids.tolist()
    order = [*own, *(i for i in distribution.top(found.masked.probs, _BARS).ids.tolist() if found.masked.probs[i] > 0)]
    order = list(dict.fromkeys(order))[:_BARS]
    if node is not None and node.token_id not in order:
        order[-1] = node.token_id
    return sorted(order, key=lambda i: -max(float(found.model[i]), float(found.masked.probs[i])))


def _facts(run: GenerationRun, found: Masking) -> list[str]:
    own = int(found.model.argmax())
    token = markdown_literal(run.tree.lm.tokenizer.token_bytes(own))
    said = [
        _("**The mask removed {mass}** of the model's probability; {n:,} of {v:,} tokens are allowed.").format(
            mass=fmt_probability(found.removed_mass), n=int(found.allowed.sum()), v=len(found.allowed)
        )
    ]
    if not found.allowed[own]:
        said.append(
            _("By itself the model would say {token} ({p}), which is not allowed.").format(
                token=token, p=fmt_probability(float(found.model[own]))
            )
        )
    if found.stateful:
        said.append(
            _(
                "{stages} carries a state that a refused draw would move, so the two ways are not compared: after "
                "each refused token the second draw would be another one."
            ).format(stages=", ".join(found.stateful))
        )
        return said
    said.append(
        _(
            "llama.cpp draws first and masks only when the token is not allowed, here with probability {chance}; "
            "the two ways are {distance} apart (total variation)."
        ).format(
            chance=fmt_probability(found.retry_chance), distance=fmt_probability(_without_dust(found.total_variation))
        )
    )
    return said


def _examples(lm: LanguageModel, prompt: str) -> list[tuple[str, Kind, str]]:
    """Return two constraints that suit the model and the prompt's language."""
    if lm.name not in builtin.names():
        schema = (
            '{"type": "object",\n "properties": {"name": {"type": "string", "maxLength": 20}, '
            '"age": {"type": "integer", "maximum": 120}},\n "required": ["name", "age"], "additionalProperties": false}'
        )
        return [
            (_("A person as JSON"), "json_schema", schema),
            (_("A date"), "regex", r" ?(19|20)\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"),
        ]
    if any("\u4e00" <= character <= "\u9fff" for character in prompt):
        return [
            (_("Four to eight characters and a full stop"), "regex", r"\p{Han}{4,8}。"),
            (_("One of three texts"), "choices", "很好。\n不太好。\n下雨了。"),
        ]
    return [
        (_("Four words and a full stop"), "regex", r"( [a-z]+){4}\."),
        (_("One of three texts"), "choices", " tea.\n milk.\n to go home."),
    ]
