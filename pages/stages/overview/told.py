"""What the overview is told of a pass: the way, its texts and where its parts lead, ready for the scripts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import torch
from torch import Tensor

from lmcore import LanguageModel
from lmcore.analysis.overview.way import WholeWay
from lmcore.generation.run import GenerationRun
from lmcore.sampling import new_generator
from pages.common import link, stages
from pages.common.text import visible
from pages.figures.theme import position_colour
from pages.live.overview import packed

ROWS = 12  # tokens told one by one; what stands before and after them is told together
MEAN = -1  # in a head's place: the mean of all heads
N_TEXTS = 400  # texts sent with the logits: of the most probable tokens, enough for every bar that has room


@dataclass(frozen=True)
class Chosen:
    """What the reader follows: a position, a block, a head or the mean of all, and a candidate of the next token."""

    position: int
    layer: int
    head: int
    candidate: int | None = None


def window(length: int, position: int) -> range:
    """Return the positions told one by one: the last ones, or those up to a position further back.

    >>> window(5, 4), window(40, 39), window(40, 2), window(40, 20)
    (range(0, 5), range(28, 40), range(0, 12), range(9, 21))
    """
    stop = length if position >= length - ROWS else max(position + 1, min(ROWS, length))
    return range(max(0, stop - ROWS), stop)


def text(lm: LanguageModel, ids: list[int], n_prompt: int, n_added: int, shown: range) -> dict[str, Any]:
    """Return the tokens of the window, and how many stand before and after it."""
    kinds = ("added", "prompt", "drawn")
    rows = [
        {
            "position": position,
            "id": ids[position],
            "text": visible(lm.tokenizer.token_bytes(ids[position])),
            "hue": position_colour(position),
            "kind": kinds[(position >= n_added) + (position >= n_prompt)],
        }
        for position in shown
    ]
    return {"rows": rows, "earlier": shown.start, "later": len(ids) - shown.stop, "length": len(ids)}


def way(lm: LanguageModel, found: WholeWay, candidate: int | None) -> dict[str, Any]:
    """Return the numbers of the way, with those of the candidate that is followed."""
    optional = {
        "added": found.added,
        "rotation": found.rotation,
        "rotation_local": found.rotation_local,
        "bias": found.bias,
    }
    return {
        "embedding": packed(found.embedding),
        **{name: None if values is None else packed(values) for name, values in optional.items()},
        "attention": packed(found.attention),
        "before": packed(found.attention_before),
        "lens": [
            {"id": token, "text": visible(lm.tokenizer.token_bytes(token)), "p": p}
            for token, p in zip(found.lens_ids.tolist(), found.lens_probs.tolist(), strict=True)
        ],
        "candidate": None if candidate is None else _candidate(lm, found, candidate),
        "hidden": packed(found.hidden_state),
    }


def _candidate(lm: LanguageModel, found: WholeWay, candidate: int) -> dict[str, Any]:
    assert found.candidate_probs is not None and found.candidate_ranks is not None
    return {
        "id": candidate,
        "text": visible(lm.tokenizer.token_bytes(candidate)),
        "probs": found.candidate_probs.tolist(),
        "ranks": found.candidate_ranks.tolist(),
    }


def model(lm: LanguageModel) -> dict[str, Any]:
    """Return the model's sizes."""
    config = lm.config
    return {
        "name": lm.name,
        "vocab": config.vocab_size,
        "d": config.d_model,
        "layers": config.n_layers,
        "heads": config.n_heads,
        "encoding": config.position_encoding,
        "local": list(config.local_layers),
        "unrotated": list(config.unrotated_layers),
    }


def texts(lm: LanguageModel, logits: Tensor, named: set[int]) -> dict[str, list[Any]]:
    """Return the texts of the most probable tokens, and of those named."""
    most = torch.topk(logits, min(N_TEXTS, len(logits))).indices.tolist()
    ids = sorted({*most, *named})
    return {"ids": ids, "texts": [visible(lm.tokenizer.token_bytes(token)) for token in ids]}


def drawn(run: GenerationRun, seed: int) -> dict[str, Any]:
    """Return what was drawn last, and whether another token can follow."""
    node = run.node
    told: dict[str, Any] = {"n": node.depth, "seed": seed, "end": run.end, "token": None}
    told["next"] = None if run.end else _number_of(seed, node.depth)
    if node.parent is not None:
        told |= {"token": node.token_id, "text": visible(node.token), "p": node.prob, "by_hand": node.by_hand}
        if node.settings is not None and node.settings.seed is not None:
            told["u"] = _number_of(node.settings.seed, node.depth - 1)
    return told


def _number_of(seed: int, place: int) -> float:
    """Return the number of a seed's stream that the token `place` tokens after the prompt's end is drawn with."""
    return torch.rand(place + 1, dtype=torch.float64, generator=new_generator(seed))[-1].item()


def links(state: Mapping[str, Any], chosen: Chosen, prompt: str) -> dict[str, dict[str, Any]]:
    """Return where each part leads: a page, and the values that show there what is shown here.

    Args:
        state: the values every page has: model, language, the sampler's.
        chosen: what is followed.
        prompt: the text with what was drawn.
    """
    at = {"position": chosen.position, "layer": chosen.layer, "head": max(chosen.head, 0)}
    pages: dict[str, tuple[str, dict[str, Any]]] = {
        "text": ("tokenization", {"tokenization.view": "tokens"}),
        "embedding": ("embedding", {"table.view": "lookup"}),
        "position": ("position", {}),
        "blocks": ("blocks", {"blocks.view": "attention", **at}),
        "lens": ("logits", {"logits.view": "lens", "position": chosen.position}),
        "hidden": ("logits", {"logits.view": "dot", "position": chosen.position}),
        "chances": ("logits", {"logits.view": "next", "position": chosen.position}),
        "knobs": ("sampling", {"source": "model", "position": chosen.position}),
        "draw": ("generation", {"generation.view": "write"}),
    }
    titles = stages.titles()
    return {
        part: {"stage": stage, "title": titles[stage], "set": values, "href": _href(stage, {**state, **values}, prompt)}
        for part, (stage, values) in pages.items()
    }


def _href(stage: str, values: Mapping[str, Any], prompt: str) -> str:
    told = {"prompt": prompt, **{key: link.as_text(value) for key, value in values.items() if value is not None}}
    return f"{stage}?{urlencode({key: value for key, value in told.items() if len(value) <= link.LONGEST})}"


def finite(logits: Tensor) -> bool:
    """Whether a distribution follows from logits: no NaN, and no infinity but -inf."""
    return math.isfinite(logits.max().item())
