"""What order does to the next token: two sentences of the same tokens, in models trained with each encoding."""

from __future__ import annotations

import pandas as pd
import streamlit as st
import torch
from torch import Tensor

import lmcore
from lmcore.analysis.position.measures import last_position_differences
from lmcore.corpus import Truth
from lmcore.distribution import softmax, top, total_variation
from lmcore.tokenizer import Tokenizer
from pages.common import page, session, widgets
from pages.common.text import _, language, markdown_literal
from pages.figures import theme
from pages.figures.labels import vocabulary_label
from pages.figures.position import comparison
from pages.stages.position.common import built_in_models, encoding_titles, steps_trained

PAIRS = {
    "so": ("小明喜欢小红，所以", "小红喜欢小明，所以"),
    "names": ("小明喜欢小红", "小红喜欢小明"),
    "birthday": ("Today is the birthday of Tom, so Anna gives", "Today is the birthday of Anna, so Tom gives"),
    "tom": ("Tom likes Anna, so", "Anna likes Tom, so"),
}
_SHOWN = 6
_COMPARED = 8

CODE = """
import lmcore
from lmcore.distribution import softmax, total_variation
from lmcore.analysis.position.measures import last_position_differences

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
    vocab_size = lmcore.builtin.tokenizer().vocab_size
    controls, picture = page.workbench()
    with controls:
        first, second, exchanged = _choose_pair()
        names = _models(len(first))
        extra = _chosen_model(exchanged)  # a model of another world reads the same texts in its own tokens
        own = session.language_model().config.position_encoding
        default = next(iter(extra), own if own in names else "rope")
        options: list[str] = [*names, *extra]
        titles = {name: _title(name) for name in options}
        shown = widgets.select(
            "position.encoding", _("Encoding shown below"), options, default, format_func=titles.__getitem__
        )
        st.caption(
            _(
                "The same tokens in two orders. A model that can tell the order gives two different distributions "
                "for the next token."
            )
            if sorted(first) == sorted(second)
            else _(
                "The tokens are not quite the same: a word at the start of a text has no space before it and is a "
                "different token."
            )
        )
    traces = {encoding: (session.trace(first, name), session.trace(second, name)) for encoding, name in names.items()}
    probs = {encoding: [softmax(trace["logits"][-1]) for trace in pair] for encoding, pair in traces.items()}
    others = {name: [softmax(session.logits(ids, name)[-1]) for ids in pair] for name, pair in extra.items()}
    distances = {title: total_variation(*pair).item() for title, pair in (probs | others).items()}
    stages = {encoding: last_position_differences(*pair) for encoding, pair in traces.items()}
    grammar = _grammar(first, second)
    # How long each was trained is part of what sets them apart.
    steps = {encoding: steps_trained(name) for encoding, name in names.items()}
    unequal = len(set(steps.values())) > 1
    with picture:
        _tell_stages(stages, same_tokens=sorted(first) == sorted(second))
    st.subheader(_("How far apart the predictions are"), anchor=False)
    _tell_distances(distances, steps if unequal else {}, grammar)
    if unequal:
        st.caption(
            _(
                "The models were not trained for the same number of steps: part of the difference comes from "
                "training, not from the position encoding."
            )
        )
    page.equation(
        rf"\mathrm{{TV}} = \tfrac12 \sum_{{t=1}}^{{{vocab_size}}} "
        r"\left| P(t \mid \text{A}) - P(t \mid \text{B}) \right|"
    )
    _tell_differences(probs, grammar)
    _tell_distributions(names.get(shown, shown), *(probs | others)[shown])
    page.numbers_table(
        pd.DataFrame(
            [
                {
                    _("model"): names.get(title, title),
                    _("encoding"): _title(title if title in names else own),
                    _("steps trained"): steps.get(title),
                    _("total variation"): distance,
                    **stages.get(title, {}),
                }
                for title, distance in distances.items()
            ]
        ),
        "position-order",
        {_("total variation"): "%.6f", **dict.fromkeys(next(iter(stages.values())), "%.3g")},
    )
    page.snippet(CODE.format(first=first, second=second, names=tuple(names.values())))


def _tell_distances(distances: dict[str, float], steps: dict[str, int | None], grammar: list[Tensor] | None) -> None:
    rows = {} if grammar is None else {_("the grammar itself"): total_variation(*grammar).item()}
    colours = [theme.CATEGORICAL[2]] * len(rows)
    for title, distance in distances.items():
        trained = steps.get(title)
        words = _title(title)
        if trained is not None:
            words = _("{encoding}, {n:,} steps").format(encoding=words, n=trained)
        rows[words] = distance
        colours.append(theme.CATEGORICAL[0])
    page.figure(
        theme.bars(
            list(rows.values()),
            list(rows),
            kind="amount",
            value_title=_("total variation distance, from 0 to 1"),
            colours=colours,
        ),
        "position-order",
        _("The distance between the next-token distributions after the two sentences, for each position encoding."),
    )


def _choose_pair() -> tuple[list[int], list[int], tuple[str, str] | None]:
    """Return the two sentences in the built-in models' tokens, and as texts where they are texts."""
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
    tokenizer = lmcore.builtin.tokenizer()
    if pair == "prompt":
        session.require_tokens(3)
        first = session.encoding(name=lmcore.builtin.DEFAULT).ids[: _longest()]
        st.caption(
            _(
                "The first token and the last but one are exchanged. The last stays in place, because the next token "
                "is predicted from it."
            )
        )
        second = _exchanged(first)
        texts = None
    else:
        first, second = (tokenizer.encode(text).ids for text in PAIRS[pair])
        texts = PAIRS[pair]
    for name, ids in (("A", first), ("B", second)):
        st.markdown(f"**{name}** {markdown_literal(tokenizer.decode_bytes(ids))}")
    return list(first), list(second), texts


def _exchanged(ids: list[int], start: int = 0) -> list[int]:
    """Return the ids with the first token from `start` on and the last but one exchanged."""
    last = len(ids) - 2
    return [*ids[:start], ids[last], *ids[start + 1 : last], ids[start], ids[-1]] if last > start else list(ids)


def _longest() -> int:
    return max(config.context_length for config in lmcore.builtin.configs().values())


def _chosen_model(texts: tuple[str, str] | None) -> dict[str, tuple[list[int], list[int]]]:
    """Return the two sentences in the chosen model's own tokens when it is none of the small world's."""
    name = session.model_name()
    if name in lmcore.builtin.names():
        return {}
    tokenizer = session.language_model().tokenizer
    if texts is not None:
        return {name: (list(tokenizer.encode(texts[0]).ids), list(tokenizer.encode(texts[1]).ids))}
    found = session.encoding()
    return {name: (list(found.ids), _exchanged(list(found.ids), found.n_added))}


def _models(n_tokens: int) -> dict[str, str]:
    """Return the built-in tied models that can read so many tokens, by position encoding."""
    configs = lmcore.builtin.configs()
    return {encoding: name for encoding, name in built_in_models().items() if configs[name].context_length >= n_tokens}


def _grammar(first: list[int], second: list[int]) -> list[Tensor] | None:
    """Return the grammar's next-token distributions, or None when it never says one of the two."""
    truth = Truth(lmcore.builtin.tokenizer())
    probs = [truth.next_token_probs(ids) for ids in (first, second)]
    return None if any(p is None for p in probs) else [torch.from_numpy(p) for p in probs]


def _tell_stages(stages: dict[str, dict[str, float]], same_tokens: bool) -> None:
    names = list(next(iter(stages.values())))
    page.figure(
        comparison.stage_differences(
            [[by_stage[name] for by_stage in stages.values()] for name in names],
            names,
            list(map(_title, stages)),
            _("difference"),
        ),
        "position-stages",
        _("Relative difference of the last position's vector between the two sentences, by stage and encoding."),
        chooses=lambda cell: {"position.encoding": list(stages)[cell.column]},
    )
    st.markdown(
        _(
            "The difference of the vectors at the **last** position, relative to their length. Without "
            "positions, the first attention layer sees the same set of tokens from the last position and gives "
            "the same result. Deeper layers can tell the order: an earlier token saw only the tokens before "
            "*it*, so the causal mask brings the order in."
        )
    )
    if same_tokens and "none" in stages:
        others = [by_stage["blocks.0.attn.out"] for encoding, by_stage in stages.items() if encoding != "none"]
        st.markdown(
            _(
                "After the attention of block 0, the two vectors without position encoding differ by {none}, "
                "which is rounding. With the other encodings they differ by {least} to {most}."
            ).format(
                none=f"**{stages['none']['blocks.0.attn.out']:.1e}**",
                least=f"{min(others):.3f}",
                most=f"{max(others):.3f}",
            )
        )


def _tell_differences(probs: dict[str, list[Tensor]], grammar: list[Tensor] | None) -> None:
    st.subheader(_("Difference of the probabilities after A and after B"), anchor=False)
    pairs = {_("grammar"): grammar, **probs} if grammar else probs
    differences = {title: first.double() - second.double() for title, (first, second) in pairs.items()}
    ids = top(torch.stack([difference.abs() for difference in differences.values()]).mean(0), _COMPARED).ids
    page.figure(
        comparison.differences(
            [[difference[token].item() for difference in differences.values()] for token in ids.tolist()],
            [_token(token, lmcore.builtin.tokenizer()) for token in ids.tolist()],
            list(map(_title, differences)),
            _("P after A − P after B"),
        ),
        "position-differences",
        _("Difference of each likely next token's probability between A and B, for every encoding."),
        chooses=lambda cell: {"position.encoding": title} if (title := list(differences)[cell.column]) in probs else {},
    )
    st.caption(
        _(
            "The {n} of {total} tokens that differ most, over all encodings. A column of zeros means that the "
            "model cannot tell the order."
        ).format(n=len(ids), total=len(next(iter(differences.values()))))
    )


def _tell_distributions(name: str, first: Tensor, second: Tensor) -> None:
    st.subheader(_("The next token after A and after B"), anchor=False)
    st.caption(_("Model: {name}. Choose another encoding above.").format(name=name))
    ids = top(torch.maximum(first, second), _SHOWN).ids
    page.figure(
        comparison.two_distributions(
            [_token(token, session.language_model(name).tokenizer) for token in ids.tolist()],
            first[ids],
            second[ids],
            ("A", "B"),
            _("probability; the {n} most probable tokens of {total}").format(n=len(ids), total=len(first)),
        ),
        "position-next-token",
        _("Probabilities of the most probable next tokens after sentence A and after sentence B."),
    )


def _title(name: str) -> str:
    """Return what an encoding is called; a model keeps its name."""
    return encoding_titles().get(name, name)


def _token(token_id: int, tokenizer: Tokenizer) -> str:
    return vocabulary_label(token_id, tokenizer.token_bytes(token_id))
