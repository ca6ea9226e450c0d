"""The MLP: which of its units a token activates."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from lmcore.analysis import most_active_units
from pages.common import page, widgets
from pages.common.text import _, visible
from pages.figures.blocks import residual as figures
from pages.figures.theme import fmt_probability
from pages.stages.blocks.chosen import Chosen

_ACTIVATIONS = {
    "silu": r"\mathrm{SiLU}",
    "gelu": r"\mathrm{GELU}",
    "gelu_tanh": r"\mathrm{GELU}",
    "gelu_sigmoid": r"\mathrm{Swish}_{1.702}",
    "relu": r"\mathrm{ReLU}",
}


def equations(chosen: Chosen) -> tuple[str, ...]:
    """Return the MLP with this model's sizes."""
    config, length = chosen.config, len(chosen.labels)
    sizes = rf"[{config.d_model},\,{config.d_mlp}]"
    up = rf"\underset{{[{length},\,{config.d_model}]}}{{x}}\,\underset{{{sizes}}}{{W_{{\mathrm{{up}}}}}}"
    act = _ACTIVATIONS[config.activation]
    if config.gated_mlp:
        gate = rf"x\,\underset{{{sizes}}}{{W_{{\mathrm{{gate}}}}}}"
        post = rf"{act}\big(\underbrace{{{gate}}}_{{\mathrm{{gate}}}}\big)\odot\underbrace{{{up}}}_{{\mathrm{{pre}}}}"
        if config.mlp_limit is not None:  # gpt-oss
            limit, offset = config.mlp_limit, config.mlp_up_offset
            held = rf"\mathrm{{clamp}}\big(\underbrace{{{up}}}_{{\mathrm{{pre}}}},\,\pm{limit:g}\big)"
            post = (
                rf"{act}\big(\min(\underbrace{{{gate}}}_{{\mathrm{{gate}}}},\,{limit:g})\big)"
                rf"\odot\big({held} + {offset:g}\big)"
            )
    else:
        post = rf"{act}\big(\underbrace{{{up}}}_{{\mathrm{{pre}}}}\big)"
    return (
        rf"\underset{{[{length},\,{config.d_mlp}]}}{{\mathrm{{post}}}} = {post},\qquad "
        rf"\mathrm{{out}} = \mathrm{{post}}\;\underset{{[{config.d_mlp},\,{config.d_model}]}}{{W_{{\mathrm{{down}}}}}}",
    )


def count_picker(chosen: Chosen) -> int:
    """Let the reader choose how many units to see."""
    return widgets.slider("units", _("Units shown"), 5, 50, 15) if chosen.config.d_mlp > 5 else chosen.config.d_mlp


def expert_picker(chosen: Chosen) -> int:
    """Let the reader choose one of the experts that the token goes to; return its place in the router's order."""
    if chosen.config.n_experts_used is None:
        return 0
    experts = chosen.trace[f"blocks.{chosen.layer}.mlp.chosen"][chosen.position].long().tolist()
    return widgets.select("choice", _("Expert"), range(len(experts)), 0, format_func=lambda place: str(experts[place]))


def show(chosen: Chosen, count: int, choice: int) -> None:
    """Show the most active units at the chosen position, in a mixture those of one expert."""
    found = most_active_units(chosen.trace, chosen.config, chosen.layer, chosen.position, count, choice)
    page.figure(
        figures.units(found.post.numpy(), found.units.tolist(), "post"),
        "unit-bars",
        _("Bars: the MLP units with the largest output at the chosen position, positive or negative."),
    )
    said = _("At {token}, these {n} of {total} units make up {share} of the sum of squares of post.")
    st.text(
        said.format(
            token=visible(chosen.found.tokens[chosen.position]),
            n=len(found.units),
            total=chosen.config.d_mlp,
            share=fmt_probability(found.share),
        )
    )
    activated = f"{chosen.config.activation}({'gate' if found.gate is not None else 'pre'})"
    columns: dict[str, object] = {_("Unit"): found.units.numpy()}
    if found.gate is not None:
        columns |= {"gate": found.gate.numpy(), activated: found.activated.numpy(), "pre": found.pre.numpy()}
    else:
        columns["pre"] = found.pre.numpy()
    columns["post"] = found.post.numpy()
    page.numbers_table(
        pd.DataFrame(columns), "units", dict.fromkeys([name for name in columns if name != _("Unit")], "number")
    )


def snippet(chosen: Chosen, count: int, choice: int) -> str:
    """Return the code for this section."""
    return chosen.snippet(
        "units = lmcore.analysis.most_active_units(\n"
        f"    trace, lm.config, block={chosen.layer}, position={chosen.position}, n={count}"
        f"{f', choice={choice}' if choice else ''}\n"
        ")\n"
        "print(units.units, units.gate, units.pre, units.post)"
    )
