"""The model that the calculator counts: the chosen one, a published one, or one built with sliders."""

from __future__ import annotations

from typing import Any

import streamlit as st

from lmcore import LanguageModel, ModelConfig
from lmcore.parameters import PRESETS, PublishedConfig
from pages.common import link, widgets
from pages.common.text import _

START = PRESETS["curriculum-12x768"]  # where the sliders begin


def subject_picker(lm: LanguageModel) -> ModelConfig:
    """Let the reader choose whose config is counted and return it."""
    titles = {
        "this": _("this model: {name}").format(name=lm.name),
        "free": _("designed with sliders"),
        **{name: config.title for name, config in PRESETS.items()},
    }
    name = widgets.select("tying.subject", _("Model"), list(titles), "this", format_func=titles.__getitem__)
    if name == "free":
        return free_config()
    return lm.config if name == "this" else PRESETS[name]


def free_config() -> ModelConfig:
    """Return the config that the sliders make; sizes that do not fit together are said, and the page stops."""
    sizes: dict[str, Any] = {
        "d_model": widgets.slider("d_model", "d_model", 64, 16_384, START.d_model, step=64),
        "n_layers": widgets.slider("n_layers", "n_layers", 1, 128, START.n_layers),
        "n_heads": widgets.slider("n_heads", "n_heads", 1, 128, START.n_heads),
        "n_kv_heads": widgets.slider("n_kv_heads", "n_kv_heads", 1, 128, START.n_kv_heads),
        "d_mlp": widgets.slider("d_mlp", "d_mlp", 64, 65_536, START.d_mlp, step=64),
        "vocab_size": widgets.slider("vocab_size", "vocab_size", 256, 300_000, START.vocab_size),
    }
    gated = widgets.toggle("gated", _("Gated MLP (three matrices)"), START.gated_mlp)
    tied = widgets.toggle("tied", _("Tied"), True)
    try:
        return ModelConfig(**sizes, context_length=START.context_length, gated_mlp=gated, tie_embeddings=tied)
    except ValueError as error:
        st.info(
            _(
                "These sizes do not match: d_model must be a multiple of n_heads, with an even d_head, and "
                "n_heads must be a multiple of n_kv_heads."
            )
        )
        st.code(str(error), language=None, wrap_lines=True)
        link.stop()


def sources(config: ModelConfig) -> None:
    """Say where a published model's sizes and its tying are stated."""
    if isinstance(config, PublishedConfig):
        st.caption(_("Source of the sizes: {source}.").format(source=literal(config.source)))
        st.caption(_("Source for the tying: {source}.").format(source=literal(config.tie_source)))


def literal(source: str) -> str:
    """Return a source's text for Markdown: the names in it have underscores, which are not emphasis."""
    return source.replace("_", "\\_")


def group_names() -> dict[str, str]:
    """Return what the groups of parameters are called on screen."""
    return {
        "embedding": _("embedding"),
        "position": _("position"),
        "attention": _("attention"),
        "mlp": "MLP",
        "norm": _("norms"),
        "head": _("LM head"),
        "other": _("other"),
    }


def config_code(lm: LanguageModel, config: ModelConfig) -> str:
    """Return the Python that gives the counted config."""
    if config is lm.config:
        return f"lmcore.load({lm.name!r}).config"
    for name, preset in PRESETS.items():
        if preset is config:
            return f"PRESETS[{name!r}]"
    fields = "vocab_size", "d_model", "n_layers", "n_heads", "n_kv_heads", "d_mlp", "context_length"
    sizes = ", ".join(f"{field}={getattr(config, field)}" for field in fields)
    return f"lmcore.ModelConfig({sizes}, gated_mlp={config.gated_mlp}, tie_embeddings={config.tie_embeddings})"


def facts(header: list[str], rows: list[list[str]]) -> None:
    """Show a few numbers as a small table in which long ones are not cut off."""
    lines = [header, ["---"] + ["--:"] * (len(header) - 1), *rows]
    st.markdown("\n".join("| " + " | ".join(line) + " |" for line in lines))


def mebibytes(n_bytes: int) -> str:
    """Return an amount of memory in MiB (2^20 bytes), with the unit.

    >>> mebibytes(37_748_736)
    '36.00 MiB'
    """
    return f"{n_bytes / 2**20:,.2f} MiB"
