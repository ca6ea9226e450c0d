"""Direct logit attribution: a logit as a sum over the components that wrote into the residual stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from lmcore.block import Block
from lmcore.mlp import MLP
from lmcore.model import Model
from lmcore.norm import LayerNorm, RMSNorm
from lmcore.trace import Trace


@dataclass(frozen=True)
class Attribution:
    """The logits of some tokens at one position, split by component.

    Attributes:
        components: n names: "token_embedding", "position_embedding", "blocks.i.attn.head.h", "blocks.i.mlp", and
            the biases "blocks.i.attn.out.bias", "blocks.i.mlp.down.bias", "final_norm.bias", "head.bias", and those of
            the norms after attention and MLP, where there are any.
        contributions: float64 [n, tokens].
        logits: float64 [tokens], the model's own logits; before the soft cap, where there is one.
        remainder: float64 [tokens], logits minus the sum of the contributions: float32 rounding in the model.
    """

    components: tuple[str, ...]
    contributions: Tensor
    logits: Tensor
    remainder: Tensor


def attribute(model: Model, trace: Trace, position: int, token_ids: Sequence[int]) -> Attribution:
    """Split logits at a position exactly, through the final norm with its scale held as it was.

    Everything before the final norm is a sum. The norm divides that sum by one number, the recorded scale; with the
    number held fixed it is linear, and so is the head. Each term's share is what the head reads of it alone. Where
    attention and MLP are normed before they are added (Gemma's sandwich norms), those scales are held fixed as well.
    It says what wrote a logit directly, not what would happen without the component: the scales, and all later
    components, would then differ. (Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", logit
    attribution.)

    Args:
        model: the model traced.
        trace: of a pass over one sequence.
        position: the position whose logits are split.
        token_ids: the tokens whose logits are split.

    Raises:
        ValueError: for a token outside the vocabulary.
    """
    for token_id in token_ids:
        if not 0 <= token_id < model.config.vocab_size:
            raise ValueError(f"token_ids holds {token_id}: ids run from 0 to {model.config.vocab_size - 1}.")
    with torch.inference_mode():
        scale = model.config.logit_scale
        rows = model.head.weight[list(token_ids)].double() * scale  # [tokens, d_model]
        names, written = zip(*_written(model, trace, position), strict=True)
        norm = model.final_norm
        contributions = _normed(torch.stack(written), norm, trace["final_norm.scale"][position]) @ rows.T
        if isinstance(norm, LayerNorm) and norm.bias is not None:
            names, contributions = (*names, "final_norm.bias"), _append(contributions, rows @ norm.bias.double())
        if model.head.bias is not None:
            bias = model.head.bias[list(token_ids)].double() * scale
            names, contributions = (*names, "head.bias"), _append(contributions, bias)
        logits = trace["logits"][position, list(token_ids)].double()
        cap = model.config.logit_softcap
        if cap is not None:
            logits = cap * torch.atanh(logits / cap)
        return Attribution(names, contributions, logits, logits - contributions.sum(0))


def as_added(model: Model, trace: Trace, part: str, position: int, vectors: Tensor) -> Tensor:
    """Return vectors [n, d_model] that a part wrote at a position as they are added to the stream, float64.

    Args:
        model: the model traced.
        trace: of a pass over one sequence.
        part: blocks.i.attn or blocks.i.mlp.
        position: where they were written.
        vectors: the part's output, or what it is a sum of.
    """
    norm = model.get_submodule(f"{part}_post_norm") if f"{part}_post_norm.scale" in trace else None
    if isinstance(norm, RMSNorm | LayerNorm):
        vectors = _normed(vectors, norm, trace[f"{part}_post_norm.scale"][position])
    return vectors.double() * model.config.residual_scale


def read_by_head(model: Model, trace: Trace, position: int, vectors: Tensor) -> Tensor:
    """Return what vectors [n, d_model] of the stream add to each logit at a position, float64 [n, V]."""
    normed = _normed(vectors, model.final_norm, trace["final_norm.scale"][position])
    rows = model.head.weight.split(16_384)  # one part at a time is widened: a large vocabulary would fill the memory
    return torch.cat([normed @ part.double().T for part in rows], -1) * model.config.logit_scale


def _written(model: Model, trace: Trace, position: int) -> Iterator[tuple[str, Tensor]]:
    """Yield everything that was added into the residual stream at a position, float64 [d_model] each."""
    config = model.config
    yield "token_embedding", trace["token_embedding"][position].double() * config.embedding_scale
    if "position_embedding" in trace:
        yield "position_embedding", trace["position_embedding"][position].double()
    for i, block in enumerate(model.blocks):
        assert isinstance(block, Block)  # nn.ModuleList does not say what it holds
        out, scale = block.attn.out, config.residual_scale
        by_head = out.weight.double().unflatten(-1, (config.n_heads, config.d_head))  # [d_model, H, d_head]
        heads = torch.einsum("hd,mhd->hm", trace[f"blocks.{i}.attn.z"][:, position].double(), by_head)
        attn = {f"blocks.{i}.attn.head.{head}": vector for head, vector in enumerate(heads)}
        if out.bias is not None:
            attn[f"blocks.{i}.attn.out.bias"] = out.bias.double()
        yield from _added(attn, block.attn_post_norm, f"blocks.{i}.attn_post_norm", trace, position, scale)
        mlp = {f"blocks.{i}.mlp": trace[f"blocks.{i}.mlp.out"][position].double()}
        if isinstance(block.mlp, MLP) and block.mlp.down.bias is not None:  # experts' biases stay with what they write
            mlp[f"blocks.{i}.mlp"] -= block.mlp.down.bias.double()
            mlp[f"blocks.{i}.mlp.down.bias"] = block.mlp.down.bias.double()
        yield from _added(mlp, block.mlp_post_norm, f"blocks.{i}.mlp_post_norm", trace, position, scale)


def _added(
    written: dict[str, Tensor],
    norm: RMSNorm | LayerNorm | None,
    name: str,
    trace: Trace,
    position: int,
    scale: float,
) -> Iterator[tuple[str, Tensor]]:
    """Yield what a part wrote as it is added to the stream: through the norm after it, if any, and times a scale."""
    for component, vector in written.items():
        yield component, scale * (vector if norm is None else _normed(vector, norm, trace[f"{name}.scale"][position]))
    if isinstance(norm, LayerNorm) and norm.bias is not None:
        yield f"{name}.bias", scale * norm.bias.double()


def _normed(vectors: Tensor, norm: RMSNorm | LayerNorm, scale: Tensor) -> Tensor:
    """Return the share of each vector [..., d_model] in a norm's output, its bias left out, the scale held fixed."""
    if isinstance(norm, LayerNorm):
        vectors = vectors - vectors.mean(-1, keepdim=True)
    return vectors / scale.double() * norm.gain.double()


def _append(contributions: Tensor, row: Tensor) -> Tensor:
    return torch.cat((contributions, row.unsqueeze(0)))
