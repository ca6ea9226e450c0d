"""The parts of an encoder and of cross-attention, which stand beside the decoder that ModelConfig describes.

Attention has no biases here: the 2017 Transformer and T5 have none.
"""

from __future__ import annotations

from lmcore.parameters.published import Part


def encoder_parts(*, gated_mlp: bool = False, mlp_bias: bool = False, norm_bias: bool = False) -> list[Part]:
    """Return the parts of the encoder's blocks, of the same widths as the decoder's."""
    layers, blocks = "n_encoder_layers", "encoder.blocks"
    parts = _attention(f"{blocks}.attn", layers) + _norm(f"{blocks}.attn_norm", layers, norm_bias)
    for name in ("gate", "up") if gated_mlp else ("up",):
        parts.append(Part(f"{blocks}.mlp.{name}", "mlp", f"{layers} * d_model * d_mlp"))
        if mlp_bias:
            parts.append(Part(f"{blocks}.mlp.{name}.bias", "mlp", f"{layers} * d_mlp"))
    parts.append(Part(f"{blocks}.mlp.down", "mlp", f"{layers} * d_mlp * d_model"))
    if mlp_bias:
        parts.append(Part(f"{blocks}.mlp.down.bias", "mlp", f"{layers} * d_model"))
    return parts + _norm(f"{blocks}.mlp_norm", layers, norm_bias)


def cross_attention_parts(*, norm_bias: bool = False) -> list[Part]:
    """Return the parts by which each of the decoder's blocks reads the encoder."""
    return _attention("blocks.cross_attn", "n_layers") + _norm("blocks.cross_attn_norm", "n_layers", norm_bias)


def _attention(prefix: str, layers: str) -> list[Part]:
    inward = [Part(f"{prefix}.{name}", "attention", f"{layers} * d_model * (n_heads * d_head)") for name in "qkv"]
    return [*inward, Part(f"{prefix}.out", "attention", f"{layers} * (n_heads * d_head) * d_model")]


def _norm(name: str, layers: str, bias: bool) -> list[Part]:
    gain = Part(name, "norm", f"{layers} * d_model")
    return [gain, Part(f"{name}.bias", "norm", gain.symbols)] if bias else [gain]
