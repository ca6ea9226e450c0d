"""From bytes to tokens, merge by merge, with a slider that moves in the browser."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

from lmcore.tokenizer.merges import MergeStep
from lmcore.tokenizer.pieces import piece_lives
from pages.common.escape import visible
from pages.live.newest import Newest
from pages.live.part import part


@dataclass(frozen=True)
class Wording:
    """What the part says, in the reader's language; the braces are filled in as the slider moves."""

    label: str = "Merges done"
    start: str = "Before the first merge: {pieces} single bytes."
    step: str = "Merge {step} of {steps}, rank {rank}: {left} + {right} → {joined}. {pieces} pieces."


def replay_data(first: Sequence[bytes], steps: Sequence[MergeStep]) -> dict[str, list[dict[str, str | int | None]]]:
    """Return what the browser needs: every piece with the steps between which it stands, and each step's merge."""
    data = b"".join(first)
    return {
        "pieces": [
            {"text": visible(data[life.start : life.end]), "born": life.born, "died": life.died}
            for life in piece_lives(first, steps)
        ],
        "steps": [
            {
                "rank": step.rank,
                "left": visible(step.pair[0]),
                "right": visible(step.pair[1]),
                "joined": visible(step.pair[0] + step.pair[1]),
                "pieces": len(step.pieces),
            }
            for step in steps
        ],
    }


def merge_replay(
    first: Sequence[bytes],
    steps: Sequence[MergeStep],
    *,
    key: str,
    wording: Wording,
    step: int,
    on_step: Callable[[int], None],
    notes: Sequence[Mapping[str, str | int]] = (),
) -> None:
    """Show the pieces after a number of merges.

    Args:
        first: the pieces of the text before the first merge.
        steps: its merges, as `Tokenizer.replay` returns them.
        key: unique on the page.
        wording: the part's words.
        step: how many merges are done to begin with.
        on_step: called with the number the reader moved to, once the slider rests.
        notes: for each step, more values for the braces of `wording.step`.
    """

    newest = Newest(key)

    def take(value: object) -> None:
        if isinstance(value, int) and 0 <= value <= len(steps):
            on_step(value)

    shown = replay_data(first, steps)
    for values, note in zip(shown["steps"], notes, strict=False):
        values.update(note)
    payload = {**newest.data(), **shown, "wording": asdict(wording), "step": step}
    part("merge_replay")(key=key, data=payload, on_step_change=newest.taking("step", take))
