"""The chosen model's card: what its files say of it, and what in them was not understood."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import streamlit as st

from lmcore import LanguageModel
from lmcore.config import ModelConfig
from lmcore.model_card import ModelCard
from lmcore.parameters import kv_cache_bytes
from pages.common.escape import readable
from pages.common.text import _, markdown_literal, visible
from pages.figures.theme import fmt_count

_MOST = 12  # names in a list; a broken file can have thousands


def rows(lm: LanguageModel) -> list[tuple[str, str]]:
    """Return what is known of the model, and its value; lines about which the files say nothing are left out."""
    card = lm.card
    weights = sum(stored.weights for stored in card.storage.values())
    bits = 8 * sum(stored.nbytes for stored in card.storage.values()) / weights if weights else 0.0
    ends = (lm.tokenizer.token_bytes(token_id) for token_id in lm.end_tokens)
    facts = [
        (_("name in the file"), _text(card.title)),
        (_("family"), _text(card.family)),
        (_("file"), _text(card.filename)),
        (_("licence"), _text(card.licence)),
        (_("source"), _text(card.source)),
        (_("sizes"), _sizes(lm.config)),
        (_("unusual"), "; ".join(_unusual(lm.config)) or _("nothing")),
        (_("stored as"), ", ".join(f"{kind} {100 * of.weights / weights:.1f} %" for kind, of in card.storage.items())),
        (_("bits per weight"), f"{bits:.2f}" if weights else ""),
        (_("numbers in the file"), fmt_count(weights) if weights else ""),
        (_("tokenizer"), _tokenizer(lm)),
        (_("tokens that end a text"), " ".join(markdown_literal(visible(end)) for end in ends)),
        (_("chat template"), _template(lm)),
        (_("sampling advised"), ", ".join(f"{name} {value:g}" for name, value in card.sampling.items())),
        (_("memory"), _memory(lm)),
    ]
    return [(what, value) for what, value in facts if value]


def _sizes(config: ModelConfig) -> str:
    heads = f"{config.n_heads} ({config.n_kv_heads} kv)" if config.n_kv_heads != config.n_heads else config.n_heads
    sizes = {
        "d_model": config.d_model,
        "n_layers": config.n_layers,
        "n_heads": heads,
        "d_head": config.d_head,
        "d_mlp": config.d_mlp,
        "vocab_size": config.vocab_size,
        "context_length": config.context_length,
    }
    return ", ".join(f"{name} {n:,}" if isinstance(n, int) else f"{name} {n}" for name, n in sizes.items())


def _unusual(config: ModelConfig) -> Iterator[str]:
    """Yield what differs from most decoders of today: RoPE, RMSNorm before each part, a gated MLP, no soft caps."""
    if config.position_encoding != "rope":
        yield _("position encoding: {name}").format(name=config.position_encoding)
    if config.rope_scaling is not None:
        yield _("RoPE scaled: {kind}, factor {factor:g}").format(
            kind=config.rope_scaling.kind, factor=config.rope_scaling.factor
        )
    if config.rope_dims is not None:
        yield _("RoPE turns {n} of {total} components of a head").format(n=config.rope_dims, total=config.d_head)
    if config.unrotated_layers:
        yield _("{n} of {total} layers without RoPE").format(n=len(config.unrotated_layers), total=config.n_layers)
    if config.local_layers:
        yield _("{n} of {total} layers see the latest {window:,} tokens only").format(
            n=len(config.local_layers), total=config.n_layers, window=config.sliding_window
        )
    if config.n_experts is not None:
        yield _("{n} experts in each layer, {used} used").format(n=config.n_experts, used=config.n_experts_used)
    switches = {
        _("LayerNorm"): config.norm == "layernorm",
        _("norms after each part only"): not config.pre_norm,
        _("norms before and after each part"): config.sandwich_norm and config.pre_norm,
        _("norms of queries and keys"): config.qk_norm,
        _("attention and MLP side by side"): config.parallel_residual,
        _("attention sinks"): config.attention_sinks,
        _("attention scores with a soft cap"): config.attention_softcap is not None,
        _("logits with a soft cap"): config.logit_softcap is not None,
        _("an MLP without a gate"): not config.gated_mlp,
        _("scaled embeddings, blocks or logits"): (
            (config.embedding_scale, config.residual_scale, config.logit_scale) != (1.0, 1.0, 1.0)
        ),
        _("the head is the embedding"): config.tie_embeddings,
    }
    yield from (name for name, is_so in switches.items() if is_so)


def _tokenizer(lm: LanguageModel) -> str:
    first = [visible(lm.tokenizer.token_bytes(token_id)) for token_id in lm.tokenizer.added_first]
    added = _("; in front of every text: {tokens}").format(tokens=_list(first)) if first else ""
    return f"{lm.tokenizer.kind}, {lm.tokenizer.vocab_size:,}{added}"


def _template(lm: LanguageModel) -> str:
    template = lm.chat_template
    if template is None:
        return _("none")
    named = _("; named: {names}").format(names=_list(template.named)) if template.named else ""
    length = _("{n:,} characters").format(n=len(template.source))
    return f"{length}, {_text(template.filename)}{named}"


def _memory(lm: LanguageModel) -> str:
    parameters = list(lm.model.parameters())  # a shared matrix once
    weights = sum(parameter.numel() * parameter.element_size() for parameter in parameters)
    dtype = str(parameters[0].dtype).removeprefix("torch.")
    full = kv_cache_bytes(lm.config, lm.config.context_length, dtype)
    return _("weights {weights:,.0f} MiB ({dtype}); a KV cache of the full context {cache:,.0f} MiB more").format(
        weights=weights / 2**20, dtype=dtype, cache=full / 2**20
    )


def show_notes(card: ModelCard) -> None:
    """Say what is unusual about the files."""
    if card.unknown_fields:
        st.markdown(
            _(
                "Fields of the config with unknown meanings were ignored: {names}. None is known to change the numbers."
            ).format(names=_list(f"{name}={value!r:.40}" for name, value in card.unknown_fields.items()))
        )
    if card.without_row:
        st.markdown(
            _("These tokens have no row in the model's table, so no text can hold them: {names}.").format(
                names=_list(f"{token} ({token_id})" for token, token_id in card.without_row.items())
            )
        )
    if card.default_splitting:
        st.markdown(
            _(
                "The file does not say how text is split into words before merging. llama.cpp's default rule is used; "
                "the ids may differ from those the model was trained on."
            )
        )


def _list(given: Iterable[str]) -> str:
    names = list(given)
    more = f" … (+{len(names) - _MOST})" if len(names) > _MOST else ""
    return ", ".join(map(_text, names[:_MOST])) + more


def _text(given: str) -> str:
    return markdown_literal(readable(given)) if given else ""
