"""What the diagram of the model says: names, sizes, choices."""

from __future__ import annotations

from lmcore import ModelConfig
from pages.common.text import _
from pages.live.model_map import BlockMap, MapPart, ModelMap

OF_A_HEAD = ("attention", "query")  # the views that are about one head
NORMS = {"rmsnorm": "RMSNorm", "layernorm": "LayerNorm"}


def diagram(config: ModelConfig, length: int, layer: int, head: int | None, view: str, title: str) -> ModelMap:
    """Return the model as a diagram for a text of some length, one block of it opened.

    Args:
        config: the model's.
        length: tokens of the text, S.
        layer: index of the opened block.
        head: the chosen head, or None.
        view: the chosen section; "attention", "query", "residual" and "mlp" have their place in the diagram.
        title: what to call the opened block.
    """
    stream = f"[{length}, {config.d_model}]"
    vocabulary = f"[{config.vocab_size}, {config.d_model}]"
    residual, attention, mlp = (("view", name) for name in ("residual", "attention", "mlp"))
    before = [
        MapPart("ids", f"[{length}]"),
        MapPart("token_embedding", stream, f"E {vocabulary}"),
    ]
    if config.position_encoding in ("learned", "sinusoidal"):
        before.append(MapPart(_("+ positions"), stream, "position_embedding"))
    after = (
        MapPart("final_norm", stream, NORMS[config.norm]),
        MapPart(
            "head",
            f"[{length}, {config.vocab_size}]",
            f"W = E {vocabulary}" if config.tie_embeddings else f"W {vocabulary}",
        ),
    )
    opened = BlockMap(
        title,
        states=(
            MapPart("resid_pre", stream, choice=residual, selected=view == "residual"),
            MapPart("resid_mid", stream, choice=residual, selected=view == "residual"),
            MapPart("resid_post", stream, choice=residual, selected=view == "residual"),
        ),
        attention=(
            *((MapPart("attn_norm", stream, NORMS[config.norm]),) if config.pre_norm else ()),
            MapPart("attn", _heads_shape(config, length), _position_note(config), attention, view in OF_A_HEAD),
            MapPart("attn.out", stream, f"W_out [{config.d_model}, {config.n_heads * config.d_head}]"),
            *((MapPart("attn_post_norm", stream, NORMS[config.norm]),) if config.sandwich_norm else ()),
        ),
        heads=[MapPart(str(index), choice=("head", index), selected=index == head) for index in range(config.n_heads)],
        mlp=(
            *((MapPart("mlp_norm", stream, NORMS[config.norm]),) if config.pre_norm else ()),
            *_router(config, length, view),
            MapPart("mlp", _units_shape(config, length), mlp_name(config), mlp, view == "mlp"),
            MapPart("mlp.out", stream, f"W_down [{config.d_model}, {config.d_mlp}]"),
            *((MapPart("mlp_post_norm", stream, NORMS[config.norm]),) if config.sandwich_norm else ()),
        ),
    )
    blocks = [MapPart(str(index), choice=("layer", index), selected=index == layer) for index in range(config.n_layers)]
    return ModelMap(before, blocks, after, opened)


def shape_line(config: ModelConfig, length: int, view: str) -> str:
    """Return how shapes change along the chosen part of a block: once in letters, once in this model's numbers."""
    size = {
        "S": length,
        "d_model": config.d_model,
        "H": config.n_heads,
        "d_head": config.d_head,
        "d_mlp": config.d_mlp,
        "H * d_head": config.n_heads * config.d_head,
    }
    steps: dict[str, list[tuple[str, ...]]] = {
        "attention": [
            ("S", "d_model"),
            ("H", "S", "d_head"),
            ("H", "S", "S"),
            ("H", "S", "d_head"),
            ("S", "H * d_head"),
            ("S", "d_model"),
        ],
        "residual": [("S", "d_model")] * 3,
        "mlp": [("S", "d_model"), ("S", "d_mlp"), ("S", "d_model")],
    }
    if config.n_experts_used is not None:
        size["n_used"] = config.n_experts_used
        steps["mlp"][1] = ("S", "n_used", "d_mlp")
    names = {
        "attention": ["attn_norm.out" if config.pre_norm else "resid_pre", "q", "pattern", "z", "joined z", "attn.out"],
        "residual": ["resid_pre", "resid_mid", "resid_post"],
        "mlp": ["mlp_norm.out" if config.pre_norm else "resid_mid", "post", "mlp.out"],
    }[view]
    shapes = [[f"[{', '.join(shape)}]", f"[{', '.join(str(size[axis]) for axis in shape)}]"] for shape in steps[view]]
    columns = [[name, *pair] for name, pair in zip(names, shapes, strict=True)]
    widths = [max(map(len, column)) for column in columns]
    joints = ("   ", " → ", " → ")
    return "\n".join(
        joint.join(column[row].ljust(width) for column, width in zip(columns, widths, strict=True)).rstrip()
        for row, joint in enumerate(joints)
    )


def mlp_name(config: ModelConfig) -> str:
    """Return what the field calls this MLP.

    >>> mlp_name(ModelConfig(vocab_size=9, d_model=4, n_layers=1, n_heads=1, context_length=8))
    'SwiGLU'
    """
    if config.gated_mlp:
        return {"silu": "SwiGLU", "gelu": "GeGLU", "gelu_tanh": "GeGLU", "gelu_sigmoid": "SwiGLU", "relu": "ReGLU"}[
            config.activation
        ]
    return {"silu": "SiLU", "gelu": "GELU", "gelu_tanh": "GELU", "gelu_sigmoid": "GELU", "relu": "ReLU"}[
        config.activation
    ]


def _units_shape(config: ModelConfig, length: int) -> str:
    used = [] if config.n_experts_used is None else [config.n_experts_used]
    return str([length, *used, config.d_mlp])


def _router(config: ModelConfig, length: int, view: str) -> tuple[MapPart, ...]:
    """Return the router of a mixture of experts, which leads to the view of the experts."""
    if config.n_experts is None:
        return ()
    chosen = _("{n} of {total} experts").format(n=config.n_experts_used, total=config.n_experts)
    return (MapPart("router", f"[{length}, {config.n_experts}]", chosen, ("view", "experts"), view == "experts"),)


def _heads_shape(config: ModelConfig, length: int) -> str:
    queries = f"q [{config.n_heads}, {length}, {config.d_head}]"
    return f"{queries}  k v [{config.n_kv_heads}, {length}, {config.d_head}]"


def _position_note(config: ModelConfig) -> str:
    if config.qk_norm and config.position_encoding == "rope":
        return "q, k: RMSNorm, RoPE"
    return {
        "rope": _("RoPE: q, k rotated"),
        "alibi": _("ALiBi: bias on scores"),
        "relative": _("Relative: bias on scores"),
    }.get(config.position_encoding, "")
