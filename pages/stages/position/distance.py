"""Attention by distance: how far back the heads of each encoding's model look."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st
import torch

from lmcore import Trace
from lmcore.analysis.position.attention_distance import attention_by_distance, even_attention_by_distance, mean_distance
from lmcore.analysis.position.length import HELD_OUT_SEED
from lmcore.corpus import windows
from pages.common import page, session, widgets
from pages.common.shared import shared
from pages.common.text import _
from pages.figures import theme
from pages.figures.position import encodings as figures
from pages.stages.position.common import built_in_models, encoding_titles, tokens_of

_WINDOWS = 4
_LENGTHS = (128, 256, 512)

CODE = """
import torch
import lmcore
from lmcore.analysis.position.attention_distance import attention_by_distance, mean_distance
from lmcore.analysis.position.length import HELD_OUT_SEED
from lmcore.corpus import windows

def patterns(lm, ids):
    trace = lmcore.Trace()
    lm(ids, trace=trace)
    return torch.stack([trace[f"blocks.{{i}}.attn.pattern"] for i in range(lm.config.n_layers)])

for name in {names}:
    lm = lmcore.load(name)
    texts = {texts}
    found = [patterns(lm, ids) for ids in texts]
    weights = torch.stack([attention_by_distance(pattern) for pattern in found]).mean(0)     # [block, head, distance]
    print(name, weights[min({layer}, lm.config.n_layers - 1)].mean(0))
    print(torch.stack([mean_distance(pattern) for pattern in found]).mean(0))                # [block, head], tokens
"""


@dataclass(frozen=True)
class Distances:
    """Where the heads of a model look, averaged over texts.

    Attributes:
        weights: [block, head, distance], the mean attention weight.
        mean: [block, head], the mean distance in tokens.
    """

    weights: np.ndarray
    mean: np.ndarray


def show() -> None:
    """Draw the view."""
    controls, picture = page.workbench()
    chosen = session.model_name()
    with controls:
        source = widgets.select(
            "position.text",
            _("Text"),
            ["held-out", "prompt"],
            "held-out",
            format_func={"held-out": _("held-out text"), "prompt": _("my prompt")}.__getitem__,
        )
        length = None
        if source == "held-out":
            length = widgets.select("position.text_length", _("Tokens of each text"), _LENGTHS, _LENGTHS[0])
        else:
            session.require_tokens()
        layer = widgets.slider("layer", _("Block"), 0, session.language_model().config.n_layers - 1, 0)
        logarithmic = widgets.toggle("position.log_weight", _("Logarithmic scale"), True)
        found = _measure(length)
        if source == "held-out":
            st.caption(
                _("Mean over {n} texts of {length} tokens from the small world, which no model was trained on.").format(
                    n=_WINDOWS, length=length
                )
            )
            if chosen not in found:
                st.info(
                    _("{name} was not trained on the small world. Choose “my prompt” to see its heads.").format(
                        name=chosen
                    )
                )
        else:
            st.caption(_("A short prompt has few distances. A longer one shows more."))
    encodings = {name: encoding for encoding, name in built_in_models().items()}
    labels = {name: encoding_titles()[encodings[name]] if name in encodings else name for name in found}
    longest = max(distances.weights.shape[-1] for distances in found.values())
    even = (_("the same for all keys"), even_attention_by_distance(longest).numpy())
    titles = {"x_title": _("distance query − key (tokens)"), "y_title": _("mean attention weight")}
    with picture:
        st.markdown("**" + _("Model of each encoding: block {layer}, mean over its heads").format(layer=layer) + "**")
        means = {name: d.weights[min(layer, len(d.weights) - 1)].mean(0) for name, d in found.items()}
        page.figure(
            figures.by_distance(
                {labels[name]: weights for name, weights in means.items()},
                [figures.COLOURS[encodings[name]] if name in encodings else figures.OTHER for name in found],
                baseline=even,
                logarithmic=logarithmic,
                **titles,
            ),
            "position-distance",
            _("Mean attention weight against the distance between query and key, one line for each encoding."),
        )
    page.equation(r"\bar a_h(d) = \frac{1}{S - d} \sum_{q=d}^{S-1} a_h(q, q - d)")
    shown = chosen if chosen in found else built_in_models()["rope"]
    _tell_heads(shown, found[shown], min(layer, len(found[shown].weights) - 1), even, logarithmic, titles)
    page.numbers_table(
        pd.DataFrame(
            {
                _("distance"): range(longest),
                even[0]: even[1],
                **{labels[name]: pd.Series(weights) for name, weights in means.items()},
            }
        ),
        "position-distance",
        dict.fromkeys([even[0], *labels.values()], "%.6f"),
    )
    texts = (
        f"[lm.tokenizer.encode({session.prompt()!r}).ids]"
        if length is None
        else f"next(windows(HELD_OUT_SEED, {_WINDOWS}, {length}, lm.tokenizer))[:, :-1][:, : lm.config.context_length]"
    )
    page.snippet(CODE.format(names=(shown,) if length is None else tuple(found), texts=texts, layer=layer))


def _tell_heads(
    name: str, found: Distances, layer: int, even: tuple[str, np.ndarray], logarithmic: bool, titles: dict[str, str]
) -> None:
    st.subheader(_("The heads of {name}").format(name=name), anchor=False)
    heads, blocks = st.columns([3, 2])
    with heads:
        st.markdown("**" + _("Block {layer}, each head").format(layer=layer) + "**")
        weights = found.weights[layer]
        page.figure(
            figures.by_distance(
                {_("head {h}").format(h=head): line for head, line in enumerate(weights)},
                theme.CATEGORICAL,
                baseline=(even[0], even[1][: weights.shape[-1]]),
                logarithmic=logarithmic,
                **titles,
            ),
            "position-distance-heads",
            _("Mean attention weight against distance for every head of the chosen block."),
        )
    with blocks:
        st.markdown("**" + _("How far back each head looks, on average") + "**")
        page.figure(
            figures.mean_distances(
                found.mean, head_name=_("head"), x_title=_("mean distance (tokens)"), y_title=_("block")
            ),
            "position-distance-mean",
            _("Mean distance in tokens between a query and the keys it attends to, for every head of every block."),
        )
    local = session.language_model(name).config
    if local.local_layers:
        st.caption(
            _("Blocks {layers} are local: their queries see only the last {window} positions.").format(
                layers=", ".join(map(str, local.local_layers)), window=local.sliding_window
            )
        )


def _measure(length: int | None) -> dict[str, Distances]:
    """Return the distances of each built-in model on held-out text, or on the prompt with the chosen model's too."""
    names = list(built_in_models().values())
    if length is None:
        chosen = session.model_name()
        pairs = {name: tokens_of(name)[1] for name in dict.fromkeys([*names, chosen])}
        return {name: _of([session.trace(ids, name)]) for name, ids in pairs.items()}
    bar = st.empty()
    found = {}
    for number, name in enumerate(names):
        if (name, length) not in _known():
            bar.progress(number / len(names), text=_("Running {name}").format(name=name))
        found[name] = _on_held_out_text(name, length)
    bar.empty()
    return found


@shared()
def _known() -> dict[tuple[str, int], Distances]:
    """Return what was measured in this process; it serves all visitors."""
    return {}


def _on_held_out_text(name: str, length: int) -> Distances:
    known, lm = _known(), session.language_model(name)
    if (name, length) not in known:
        traces = []
        texts = next(windows(HELD_OUT_SEED, _WINDOWS, length, lm.tokenizer))[:, : min(length, lm.config.context_length)]
        for ids in texts:
            with session.forward_lock():
                lm(ids.tolist(), trace=(trace := Trace()))
            traces.append(trace)
        known[name, length] = _of(traces)
    return known[name, length]


def _of(traces: list[Trace]) -> Distances:
    """Average over traces of texts of equal length."""
    weights, means = [], []
    for trace in traces:
        patterns = [tensor for key, tensor in trace.items() if key.endswith(".attn.pattern")]
        weights.append(torch.stack([attention_by_distance(pattern) for pattern in patterns]))
        means.append(torch.stack([mean_distance(pattern) for pattern in patterns]))
    return Distances(torch.stack(weights).mean(0).numpy(), torch.stack(means).mean(0).numpy())
