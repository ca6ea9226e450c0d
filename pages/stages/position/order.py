"""What order does to the next token: two sentences of the same tokens, in models trained with each encoding."""

from __future__ import annotations

import pandas as pd
import streamlit as st
import torch

import lmcore
from lmcore.analysis.position_measures import last_position_differences
from lmcore.corpus import Truth
from lmcore.distribution import softmax, top, total_variation
from pages.common import page, session, widgets
from pages.common.text import _, language, markdown_literal, visible
from pages.figures import theme
from pages.figures.position import comparison

PAIRS = {
    "so": ("小明喜欢小红，所以", "小红喜欢小明，所以"),
    "names": ("小明喜欢小红", "小红喜欢小明"),
    "birthday": ("Today is the birthday of Tom, so Anna gives", "Today is the birthday of Anna, so Tom gives"),
    "tom": ("Tom likes Anna, so", "Anna likes Tom, so"),
}
_SHOWN = 6

CODE = """
import lmcore
from lmcore.distribution import softmax, total_variation
from lmcore.analysis.position_measures import last_position_differences

first, second = {first}, {second}        # the same tokens in two orders
for name in {names}:
    lm = lmcore.load(name)
    traces = [lmcore.Trace(), lmcore.Trace()]
    probs = [softmax(lm(ids, trace=trace)[-1]) for ids, trace in zip((first, second), traces)]
    print(name, total_variation(*probs).item())
    print(last_position_differences(*traces))
"""


def show() -> None:
    """Draw the view."""
    page.equation(
        r"\mathrm{TV} = \tfrac12 \sum_{t=1}^{V} \left| P(t \mid \text{A}) - P(t \mid \text{B}) \right|,"
        rf"\qquad V = {session.language_model().config.vocab_size}"
    )
    controls, picture = page.workbench()
    with controls:
        first, second = _choose_pair()
        names = _models(len(first))
        shown = session.model_name() if session.model_name() in names.values() else names["rope"]
        st.caption(
            _("The same tokens in two orders. A model that tells order gives the next token another distribution.")
            if sorted(first) == sorted(second)
            else _("Not quite the same tokens: a word that begins a text has no space before it, and is another token.")
        )
    traces = {encoding: (session.trace(first, name), session.trace(second, name)) for encoding, name in names.items()}
    probs = {encoding: [softmax(trace["logits"][-1]) for trace in pair] for encoding, pair in traces.items()}
    distances = {encoding: total_variation(*pair).item() for encoding, pair in probs.items()}
    stages = {encoding: last_position_differences(*pair) for encoding, pair in traces.items()}
    grammar = _grammar(first, second)
    with picture:
        # How long each was trained is part of what sets them apart.
        steps = {encoding: _steps(name) for encoding, name in names.items()}
        rows = {
            encoding
            if steps[encoding] is None
            else _("{encoding}, {n:,} steps").format(encoding=encoding, n=steps[encoding]): distance
            for encoding, distance in distances.items()
        }
        if grammar is not None:
            rows = {_("the grammar itself"): grammar, **rows}
        page.figure(
            theme.bars(
                list(rows.values()),
                list(rows),
                kind="amount",
                value_title=_("total variation distance, from 0 to 1"),
                colours=[theme.CATEGORICAL[2]] * (len(rows) - len(names)) + [theme.CATEGORICAL[0]] * len(names),
            ),
            "position-order",
            _("How far the next-token distributions after the two sentences are apart, for each position encoding."),
        )
    if len(set(steps.values())) > 1:
        st.caption(
            _("The models were not trained equally long: part of what sets them apart is training, not position.")
        )
    _tell_stages(stages)
    _tell_distributions(shown, {name: encoding for encoding, name in names.items()}[shown], probs)
    page.numbers_table(
        pd.DataFrame(
            [
                {
                    _("model"): name,
                    _("encoding"): encoding,
                    _("steps trained"): steps[encoding],
                    _("total variation"): distances[encoding],
                    **stages[encoding],
                }
                for encoding, name in names.items()
            ]
        ),
        "position-order",
        {_("total variation"): "%.6f", **dict.fromkeys(next(iter(stages.values())), "%.3g")},
    )
    page.snippet(CODE.format(first=first, second=second, names=tuple(names.values())))


def _choose_pair() -> tuple[list[int], list[int]]:
    pair = widgets.select(
        "position.pair",
        _("Two sentences"),
        [*PAIRS, "prompt"],
        "so" if language() == "zh" else "birthday",
        format_func={
            **{key: texts[0] for key, texts in PAIRS.items()},
            "prompt": _("my prompt, two tokens exchanged"),
        }.__getitem__,
    )
    if pair == "prompt":
        first = list(session.require_tokens(3).ids)
        last = len(first) - 2
        st.caption(_("The first token and the last but one change places; the last stays, for it asks the question."))
        second = [first[last], *first[1:last], first[0], first[-1]]
    else:
        first, second = (session.encoding(text).ids for text in PAIRS[pair])
    decode = session.language_model().tokenizer.decode_bytes
    for name, ids in (("A", first), ("B", second)):
        st.markdown(f"**{name}** {markdown_literal(decode(ids))}")
    return list(first), list(second)


def _models(n_tokens: int) -> dict[str, str]:
    """Return the built-in tied models that can read so many tokens, by position encoding."""
    configs = lmcore.builtin.configs()
    tied = {config.position_encoding: name for name, config in configs.items() if config.tie_embeddings}
    return {encoding: name for encoding, name in tied.items() if configs[name].context_length >= n_tokens}


def _steps(name: str) -> int | None:
    """Return for how many steps a built-in model was trained, or None when that is not on record."""
    on_record = lmcore.builtin.BuiltinModel(name).record_path.exists()
    return lmcore.builtin.record(name)["training"]["steps"] if on_record else None


def _grammar(first: list[int], second: list[int]) -> float | None:
    """Return the total variation in the grammar, or None when it never says one of the two."""
    truth = Truth(session.language_model().tokenizer)
    probs = [truth.next_token_probs(ids) for ids in (first, second)]
    return None if any(p is None for p in probs) else total_variation(*map(torch.from_numpy, probs)).item()


def _tell_stages(stages: dict[str, dict[str, float]]) -> None:
    st.subheader(_("Where in the model the two sentences part"), anchor=False)
    st.markdown(
        _(
            "How far the vectors at the **last** position are apart, relative to their length. Without positions the "
            "first attention layer sees the same set of tokens from the last one, and its result is the same. Deeper "
            "layers can tell: an earlier token saw only what came before *it*, so the causal mask has let order in."
        )
    )
    names = list(next(iter(stages.values())))
    page.figure(
        comparison.stage_differences(
            [[by_stage[name] for by_stage in stages.values()] for name in names],
            names,
            list(stages),
            _("|a − b| / mean length"),
        ),
        "position-stages",
        _("Relative difference of the last position's vector between the two sentences, by stage and encoding."),
    )


def _tell_distributions(name: str, encoding: str, probs: dict[str, list]) -> None:
    st.subheader(_("The next token after A and after B"), anchor=False)
    st.caption(_("Model: {name}. Choose another above.").format(name=name))
    first, second = probs[encoding]
    ids = top(torch.maximum(first, second), _SHOWN).ids
    tokenizer = session.language_model().tokenizer
    page.figure(
        comparison.two_distributions(
            [f"{visible(tokenizer.token_bytes(token))} · {token}" for token in ids.tolist()],
            first[ids],
            second[ids],
            ("A", "B"),
            _("probability; the {n} most probable tokens of {total}").format(n=len(ids), total=len(first)),
        ),
        "position-next-token",
        _("Probabilities of the likeliest next tokens after sentence A and after sentence B."),
    )
