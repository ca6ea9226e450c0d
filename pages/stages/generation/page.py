"""Generation: draw a token, append it, and again; every step can be looked at, taken back and chosen otherwise."""

from __future__ import annotations

from pages.common import engines, link, page, session, widgets
from pages.common.text import _
from pages.stages.generation import (
    cache,
    constrained,
    constraints,
    continuing,
    engine,
    repetition,
    reported,
    runs,
    search,
    speculation,
    ties,
    turn,
    writing,
)

LARGER = "smollm2-135m-instruct"  # a model that has read so much that its circles tighten
FREE = ("search", "trap", "many", "speculation")  # views whose texts no constraint limits
titles = {
    "write": _("Token by token"),
    "search": _("Greedy, beam, exhaustive"),
    "trap": _("Repetition trap"),
    "many": _("Many texts"),
    "ties": _("Temperature 0 and ties"),
    "reported": _("Reported log-probabilities"),
    "cache": _("KV cache"),
    "constraints": _("Constraints"),
    "speculation": _("Speculation"),
}


def show() -> None:
    """Show the view that the reader looks at."""
    lm = session.language_model()
    turn.stop_if_refused(lm)
    prompt = session.require_tokens()
    run = runs.current(lm, prompt)
    view = widgets.views("generation.view", titles, 3)
    if view in FREE:
        constraints.say_free()
    if view == "write":
        writing.show(lm, prompt, run)
    elif view == "search":
        search.show(lm, prompt)
    elif view == "trap":
        repetition.show(lm, prompt)
    elif view == "many":
        continuing.show(lm, prompt)
    elif view == "ties":
        ties.show(lm, run)
    elif view == "reported":
        reported.show(lm, run)
    elif view == "constraints":
        constrained.show(lm, prompt, run)
    elif view == "speculation":
        speculation.show(lm, prompt)
    else:
        cache.show(lm, prompt, run)


if (served := engines.chosen()) is not None:
    engine.show(served)
    link.stop()
config = session.language_model().config
page.header(
    _("Generation"),
    _("Draw a token from the model's distribution, append it, and predict again: autoregressive generation."),
    rf"t_{{n+1}} \sim \mathrm{{reshape}}\big(\mathrm{{LM}}(t_1, \dots, t_n)_n\big), \qquad "
    rf"\mathrm{{LM}}(\cdot)_n \in \mathbb{{R}}^{{{config.vocab_size}}}, \qquad n \le {config.context_length}",
)
link.fragment(show)
known = session.available_models()
larger = {"model": LARGER} if LARGER in known and known[LARGER].installed else {}
page.try_next(
    page.Suggestion(
        _("“I like”: the most probable sentence does not begin with the most probable token"),
        "generation",
        {"generation.view": "search", "prompt": "I like", "search.tokens": 2},
    ),
    page.Suggestion(
        _("Greedy decoding falls into a loop: see it tighten, round by round"),
        "generation",
        {"generation.view": "trap", "prompt": "The king", "trap.penalty": 1.0, **larger},
    ),
    page.Suggestion(
        _("Eight texts at T 1.2, compared with eight at T 0.5"),
        "generation",
        {"generation.view": "many", "temperature": 1.2, "many.temperature": 0.5},
    ),
    page.Suggestion(
        _("The usual pairing: temperature 0.8 and top-p 0.9"),
        "generation",
        {"generation.view": "write", "temperature": 0.8, "top_p": 0.9},
    ),
    page.Suggestion(
        _("Only four words and a full stop: what a constraint takes from each token"),
        "generation",
        {
            "generation.view": "constraints",
            "model": "small-world",
            "prompt": "The king",
            "constraint": "regex",
            "constraint.text": r"( [a-z]+){4}\.",
        },
    ),
    page.Suggestion(
        _("A draft model guesses the next tokens: how many are accepted?"),
        "generation",
        {"generation.view": "speculation"},
    ),
    page.Suggestion(_("What the sampler does to one distribution, stage by stage"), "sampling"),
)
