"""The prompt's tokens as chips: text, id and hue of each, one of them selected by mouse or keyboard."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pages.common.escape import visible
from pages.figures.theme import position_colour
from pages.live.newest import Newest
from pages.live.part import part

_HTML = '<div class="strip"></div>'


def token_strip(
    tokens: Sequence[bytes | str],
    captions: Sequence[str | int],
    *,
    key: str,
    label: str,
    selected: int | None = None,
    on_select: Callable[[int], None] | None = None,
    strength: Sequence[float] | None = None,
    first_position: int = 0,
) -> None:
    """Show tokens as chips.

    Args:
        tokens: each token's bytes or text; made visible here.
        captions: what stands under each, usually its id.
        key: unique on the page.
        label: what the chips are, for screen readers.
        selected: index of the selected chip.
        on_select: called with the index the reader chose, before the page runs again; without it the chips only show.
        strength: 0..1 a token, how filled its chip is (a weight, a probability); without it all are alike.
        first_position: position of the first chip, which gives the hues.
    """
    chips = [
        {"position": position, "text": visible(token), "caption": str(caption), "colour": position_colour(position)}
        for position, (token, caption) in enumerate(zip(tokens, captions, strict=True), start=first_position)
    ]
    for chip, share in zip(chips, strength or (), strict=False):
        chip["strength"] = str(round(min(max(float(share), 0.0), 1.0), 4))

    newest = Newest(key)

    def take(position: object) -> None:
        if on_select and isinstance(position, int) and 0 <= position < len(chips):
            on_select(position)

    part("token_strip", _HTML)(
        key=key,
        data={
            **newest.data(),
            "chips": chips,
            "label": label,
            "selected": selected,
            "selectable": on_select is not None,
        },
        on_position_change=newest.taking("position", take),
    )
