"""The two parts of the embedding's gradient over a training, tied and untied.

The record beside this file is of two trials that differ in the tie alone; it is made again in about a minute by
`python -m lmcore.training.sides_history`.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from lmcore import builtin
from lmcore.analysis.training.embedding_gradient import SidesSummary
from lmcore.training.trial import Trial, TrialSettings

RECORD = Path(__file__).with_name("sides_history.json")
MEASURE_EVERY = 20  # steps
# The rows on record are those of the tokens of these texts, and one that no text of the small world has.
TEXTS = (
    "今天天气不错",
    "我喜欢猫",
    "苹果很好吃",
    "患者服用华法林后出现黑便",
    "The weather today is nice",
    "I like cats",
    "The king",
    "\0",
)


@dataclass(frozen=True)
class SidesHistory:
    """Norms and cosine of both parts at some moments of a training.

    Attributes:
        steps: [M], the number of steps done at each moment.
        whole: [3, M], of the parts as whole matrices: input-side norm, output-side norm, cosine.
        rows: token id -> [3, M] likewise, of that row; the cosine is NaN where a part is 0.
    """

    steps: tuple[int, ...]
    whole: np.ndarray
    rows: Mapping[int, np.ndarray]


def history_of(measured: Sequence[tuple[int, SidesSummary]]) -> SidesHistory:
    """Return the history of a training from what was measured of it: (steps done, summary) in order; all rows."""
    each = [sides for _done, sides in measured]
    whole = np.array([[sides.input_norm, sides.output_norm, sides.cosine] for sides in each], dtype=np.float64).T
    stacked = np.stack([[sides.input_norms, sides.output_norms, sides.cosines] for sides in each], axis=-1)
    rows = {row: stacked[:, row].astype(np.float64) for row in range(stacked.shape[1])}  # [3, V, M] -> V of [3, M]
    return SidesHistory(tuple(done for done, _sides in measured), whole, rows)


def recorded() -> dict[bool, SidesHistory]:
    """Return the histories on record: True is the tied trial's, False the untied one's."""
    found = json.loads(RECORD.read_text(encoding="utf-8"))["histories"]
    return {name == "tied": _read(history) for name, history in found.items()}


def recorded_settings() -> TrialSettings:
    """Return the settings of the trials on record; they differ in `tie_embeddings`."""
    return TrialSettings(**json.loads(RECORD.read_text(encoding="utf-8"))["settings"])


def measure(settings: TrialSettings) -> SidesHistory:
    """Train a trial from its start and return its history, measured every MEASURE_EVERY steps and at both ends."""
    trial = Trial(settings, builtin.tokenizer(), ())
    steps = trial.steps()
    measured = [(0, trial.measure().sides)]
    for step in steps:
        done = step.step + 1
        if done % MEASURE_EVERY == 0 or done == settings.steps:
            measured.append((done, trial.measure().sides))
    return history_of(measured)


def main() -> None:
    """Train both trials and write the record."""
    torch.set_num_threads(1)
    settings = TrialSettings()
    tokenizer = builtin.tokenizer()
    shown = sorted({token for text in TEXTS for token in tokenizer.encode(text).ids})
    histories = {}
    for name, tied in (("tied", True), ("untied", False)):
        found = measure(dataclasses.replace(settings, tie_embeddings=tied))
        rows = {row: _numbers(found.rows[row]) for row in shown}
        histories[name] = {"steps": found.steps, "whole": _numbers(found.whole), "rows": rows}
    record = {"settings": dataclasses.asdict(settings), "torch": torch.__version__, "histories": histories}
    RECORD.write_text(json.dumps(record) + "\n", encoding="utf-8")


def _numbers(values: np.ndarray) -> list[list[float | None]]:
    return [[None if math.isnan(value) else float(f"{value:.6g}") for value in line] for line in values.tolist()]


def _read(history: Mapping[str, list]) -> SidesHistory:
    def array(values: list) -> np.ndarray:
        return np.array(values, dtype=np.float64)  # None becomes NaN

    rows = {int(row): array(values) for row, values in dict(history["rows"]).items()}
    return SidesHistory(tuple(history["steps"]), array(history["whole"]), rows)


if __name__ == "__main__":
    main()
