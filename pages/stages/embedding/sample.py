"""Which tokens are shown, and what their colours mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

import lmcore
from lmcore import LanguageModel
from lmcore.analysis.embedding.world_parts import LANGUAGES, PARTS, uses
from lmcore.corpus.occurring import occurring_tokens
from lmcore.tokenizer.token_search import pieces
from lmcore.tokenizer.writing import WRITINGS, writing_of
from pages.common import widgets
from pages.common.text import _
from pages.figures import theme
from pages.live.token_map import Colours

WORDS = "king queen man woman cat dog 国王 女王 男人 女人 猫 狗"
_MOST = 2_000  # tokens that are shown without being asked how many
_FAINT = "rgba(138, 143, 152, 0.45)"


@dataclass(frozen=True)
class Sample:
    """Tokens of a vocabulary.

    Attributes:
        ids: in order, each once.
        sentence: which they are, for the reader.
        code: the Python that gives `ids` from `lm`.
        closed: whether no other tokens are to be shown beside them.
    """

    ids: list[int]
    sentence: str
    code: str
    closed: bool = False


def random_ids(vocab_size: int, n: int, seed: int) -> list[int]:
    """Return n different ids drawn at random, ascending; the same seed draws the same."""
    return sorted(np.random.default_rng(seed).choice(vocab_size, min(n, vocab_size), replace=False).tolist())


def choose(lm: LanguageModel, seed: int) -> Sample:
    """Let the reader choose which tokens to show."""
    vocab_size = lm.config.vocab_size
    ways = {
        **({"occurring": _("small world")} if lm.name in lmcore.builtin.names() else {}),
        **({"all": _("all")} if vocab_size <= _MOST else {"random": _("a random sample"), "first": _("lowest ids")}),
        "words": _("my own words"),
    }
    way = widgets.select(
        "table.shown",
        _("Tokens shown"),
        list(ways),
        next(iter(ways)),
        format_func=ways.__getitem__,
        help=_("Tokens that occur in the small world, all or part of the vocabulary, or words that you write."),
    )
    everything = f"list(range({vocab_size}))"
    if way == "words":
        text = widgets.text("table.words", _("Words"), WORDS)
        words = text.split() or [*WORDS.split()]
        ids = list(dict.fromkeys(token for word in words for token in pieces(lm.tokenizer, word)))
        return Sample(ids, _("{n} tokens: those of your own words").format(n=len(ids)), str(ids), closed=True)
    if way == "occurring":
        ids = list(occurring_tokens(lm.tokenizer))
        return Sample(
            ids, _("the {n} tokens that the small world has").format(n=len(ids)), "list(occurring_tokens(lm.tokenizer))"
        )
    if way == "all":
        return Sample(list(range(vocab_size)), _("all {n} tokens").format(n=vocab_size), everything)
    n = widgets.slider("table.n", _("How many"), 200, 5_000, _MOST, step=100)
    if way == "first":
        sentence = _("the {n:,} lowest of {all:,} ids: in most vocabularies, the pieces merged first")
        return Sample(list(range(n)), sentence.format(n=n, all=vocab_size), f"list(range({n}))")
    return Sample(
        random_ids(vocab_size, n, seed),
        _("{n:,} of {all:,} tokens, drawn at random with seed {seed}").format(n=n, all=vocab_size, seed=seed),
        f"sorted(np.random.default_rng({seed}).choice({vocab_size}, {n}, replace=False).tolist())",
    )


def choose_colours(lm: LanguageModel, ids: list[int], lengths: torch.Tensor, default: str = "writing") -> Colours:
    """Let the reader choose what the colours of the points mean."""
    built_in = lm.name in lmcore.builtin.names()
    ways = {
        "writing": _("script"),
        **({"language": _("language"), "part": _("topic of the small world")} if built_in else {}),
        "norm": _("length of the row"),
    }
    way = widgets.select(
        "table.colour",
        _("Colour"),
        list(ways),
        default if default in ways else "writing",
        format_func=ways.__getitem__,
    )
    if way == "norm":
        return Colours(amounts=lengths.tolist(), title=_("length of the row"))
    if way == "language":
        names = {
            "zh": _("in Chinese scenes"),
            "en": _("in English scenes"),
            "both": _("in both"),
            "none": _("in no text"),
        }
        of = uses(lm.tokenizer)
        return _grouped([of[token].language for token in ids], [names[each] for each in LANGUAGES], LANGUAGES, 1)
    if way == "part":
        names = {
            "weather": _("weather"),
            "likes": _("likes"),
            "two senses": _("ambiguous words"),
            "medicine": _("medicine"),
            "royalty": _("royalty"),
            "places": _("places"),
            "counting": _("counting"),
            "daily life": _("daily life, stories"),
            "several": _("in several topics"),
            "none": _("in no text"),
        }
        of = uses(lm.tokenizer)
        return _grouped([of[token].part for token in ids], [names[each] for each in PARTS], PARTS, 2)
    names = {
        "latin": _("Latin"),
        "chinese": _("Chinese"),
        "japanese or korean": _("Japanese or Korean"),
        "cyrillic or greek": _("Cyrillic or Greek"),
        "other letters": _("other letters"),
        "no letters": _("digits, punctuation, spaces"),
        "bytes": _("part of a character"),
    }
    writings = [writing_of(lm.tokenizer.token_bytes(token)) for token in ids]
    return _grouped(writings, [names[each] for each in WRITINGS], WRITINGS, 1)


def group_of(colours: Colours, index: int) -> str:
    """Return the name of a point's group."""
    return "" if colours.groups is None else colours.names[colours.groups[index]][0]


def _grouped(values: list, names: list[str], order: tuple, n_grey: int) -> Colours:
    """Return groups in their order; the last `n_grey` of them are grey, the faintest last."""
    greys = (theme.REMOVED, _FAINT)[-n_grey:]
    palette = [*theme.CATEGORICAL, "#A6761D"][: len(names) - n_grey] + list(greys)
    return Colours([order.index(value) for value in values], list(zip(names, palette, strict=True)))
