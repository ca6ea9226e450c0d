"""Settings over every position of a text: what they keep there, and what they do to the token that really came.

A few lines give a table:

    import lmcore, pandas
    from lmcore.analysis.sampling.through import ScoredThrough, TextLogits

    lm = lmcore.load("small-world")
    text = TextLogits.of(lm(ids := lm.tokenizer.encode("今天天气很好").ids), ids)
    table = pandas.DataFrame(ScoredThrough.of(text, lmcore.SamplingSettings(top_p=0.9)).columns())
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lmcore.analysis.sampling.at_once import Measured, at_once
from lmcore.distribution import as_tensor
from lmcore.sampling import History, SamplingSettings, reshape
from lmcore.sampling.sorted_rows import SortedRows

__all__ = ["LOOSE", "ScoredThrough", "TextLogits"]

LOOSE = 10.0
"""A position is left loose where more than so many times its effective candidates, 2^H, can be drawn."""


@dataclass(frozen=True, eq=False)
class TextLogits:
    """The logits of a text and what no setting changes in them; made once a text.

    Attributes:
        logits: `[S - 1, V]`, of every position that foresees a token of the text.
        ids: The S tokens.
        totals: `[S - 1]` float64, the logarithm of the sum of e^z at each position.
        entropy_bits: `[S - 1]` float64, at temperature 1.
        bits: `[S - 1]` float64, the surprisal of the token that came, at temperature 1.
        rows: The logits, sorted.
        came: `[S - 1]` float64, the logit of the token that came, less the largest of its row.
        edited: What penalties and the like made of it last, kept for the next slider; `at_once` fills it.
    """

    logits: Tensor
    ids: tuple[int, ...]
    totals: Tensor
    entropy_bits: Tensor
    bits: Tensor
    rows: SortedRows
    came: Tensor
    edited: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, logits: Tensor, ids: Sequence[int]) -> TextLogits:
        """Measure a text's logits `[S, V]`, of a pass over its S tokens.

        Raises:
            ValueError: fewer than 2 tokens, or not one row of logits a token.
        """
        if len(ids) < 2 or logits.ndim != 2 or len(logits) != len(ids):
            raise ValueError(
                f"logits has shape {list(logits.shape)} for {len(ids)} ids: give one row a token, and 2 tokens or more."
            )
        given, tokens = as_tensor(logits[:-1], "logits"), torch.as_tensor(ids)[1:, None]
        rows, ones = SortedRows.of(given), torch.ones(len(given), dtype=torch.float64)
        weights, terms = rows.sums(ones, rows.size)
        for place in (~rows.fits).nonzero().squeeze(1).tolist():
            values = given[place].double() - rows.largest[place]
            weights[place], terms[place] = values.exp().sum(), (values.exp() * values.clamp_min(-1e6)).sum()
        came = given.gather(1, tokens).squeeze(1).double() - rows.largest
        bits = (weights.log() - came) / math.log(2)
        entropies = (weights.log() - terms / weights) / math.log(2)
        totals = rows.largest + weights.log()
        return cls(given, tuple(int(token) for token in ids), totals, entropies, bits, rows, came)

    def __len__(self) -> int:
        """Return the number of positions, one less than of tokens."""
        return len(self.logits)


@dataclass(frozen=True, eq=False)
class ScoredThrough:
    """What settings make of each position of a text; entry i is about token i + 1.

    Attributes:
        text: The text.
        settings: The settings.
        candidates: `[S - 1]` int64, how many tokens can be drawn.
        entropy_bits: `[S - 1]` float64, after the settings.
        removed_mass: `[S - 1]` float64, the probability at temperature 1 of what cannot be drawn any more.
        bits: `[S - 1]` float64, the surprisal of the token that came, after the settings; inf where it was removed.
        truth_before, truth_after: `[S - 1]` float64, the total variation distance to a known truth at temperature 1 and
            after the settings; NaN where the truth has no say. None without a truth.
    """

    text: TextLogits
    settings: SamplingSettings
    candidates: Tensor
    entropy_bits: Tensor
    removed_mass: Tensor
    bits: Tensor
    truth_before: Tensor | None = None
    truth_after: Tensor | None = None

    @classmethod
    def of(
        cls, text: TextLogits, settings: SamplingSettings, truth: Sequence[np.ndarray | None] | None = None
    ) -> ScoredThrough:
        """Reshape every position; the tokens before it are its history, and states are carried along the text.

        Args:
            text: The text.
            settings: The settings.
            truth: For each position the true distribution `[V]`, or None where it is not known.

        Raises:
            ValueError: as `reshape`.
        """
        n = len(text)
        found = at_once(text, settings) if truth is None else None
        measured = Measured.nothing(n) if found is None else found
        before, after = torch.full((2, n), math.nan, dtype=torch.float64)
        state = None
        for place in (~measured.certain).nonzero().squeeze(1).tolist():
            row, token = text.logits[place], text.ids[place + 1]
            result = reshape(row, settings, History(prompt=text.ids[: place + 1]), state)
            final = result.final
            measured.candidates[place] = len(final)
            measured.entropy_bits[place] = result.entropy_bits
            p = float(final.probs[final.token_ids == token].sum())
            measured.bits[place] = 0.0 - math.log2(p) if p > 0 else math.inf
            kept = row if final.ids is None else row[final.ids]
            mass = float((kept.double() - text.totals[place]).exp().sum())
            measured.removed_mass[place] = 0.0 if len(final) == len(result.start) else max(1 - mass, 0.0)
            if found is None:
                state = result.next_state(token)
            if truth is not None and (known := truth[place]) is not None:
                right = torch.from_numpy(known)
                plain = (row.double() - text.totals[place]).exp()
                before[place] = 0.5 * float((plain - right).abs().sum())
                after[place] = 0.5 * float((result.probs - right).abs().sum())
        measures = measured.candidates, measured.entropy_bits, measured.removed_mass, measured.bits
        told = (before, after) if truth is not None else (None, None)
        return cls(text, settings, *measures, *told)

    @property
    def possible(self) -> Tensor:
        """`[S - 1]` bool, whether the token that came could have been drawn."""
        return self.bits < math.inf

    @property
    def too_hard(self) -> list[int]:
        """Positions whose token was removed, the one the model held most probable first."""
        places = (~self.possible).nonzero().squeeze(1)
        return places[self.text.bits[places].sort(stable=True).indices].tolist()

    @property
    def too_loose(self) -> list[int]:
        """Positions where more than `LOOSE` times the effective candidates can be drawn, the loosest first."""
        ratio = self.candidates / 2.0**self.entropy_bits
        places = (ratio > LOOSE).nonzero().squeeze(1)
        return places[ratio[places].sort(descending=True, stable=True).indices].tolist()

    def columns(self) -> dict[str, list[float | int | bool]]:
        """Return a table of the positions, a list for each column."""
        told = {
            "position": list(range(len(self.text))),
            "token_id": list(self.text.ids[1:]),
            "candidates": self.candidates.tolist(),
            "entropy_bits_before": self.text.entropy_bits.tolist(),
            "entropy_bits_after": self.entropy_bits.tolist(),
            "removed_mass": self.removed_mass.tolist(),
            "possible": self.possible.tolist(),
            "bits_before": self.text.bits.tolist(),
            "bits_after": self.bits.tolist(),
        }
        if self.truth_before is not None and self.truth_after is not None:
            told["truth_distance_before"] = self.truth_before.tolist()
            told["truth_distance_after"] = self.truth_after.tolist()
        return told
