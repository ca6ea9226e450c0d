"""Training batches: windows of the small world's endless stream of documents."""

from collections.abc import Iterator

import numpy as np

from lmcore.corpus.encoded import EncodedScenes, encode_scenes
from lmcore.corpus.world import LANGUAGES, START, STAY, STOP
from lmcore.tokenizer import Tokenizer

HELD_OUT_SEED = 7_700_001
"""The seed of windows that no built-in model was trained on."""


def windows(seed: int, batch_size: int, length: int, tokenizer: Tokenizer) -> Iterator[np.ndarray]:
    """Endless batches of windows, each drawn anew.

    A window starts where a scene starts. Every second one has <|endoftext|> before it, which starts a document; the
    others start directly with the scene, as a prompt does. Scenes and documents follow until the window is full.

    Args:
        seed: The same seed gives the same batches; different seeds give independent ones, so a seed that training does
            not use is held out.
        batch_size: Windows in a batch, B.
        length: Positions a model sees of a window, T.
        tokenizer: The tokenizer whose ids are meant.

    Yields:
        [B, T + 1] int64 ids: inputs are `[:, :-1]`, targets `[:, 1:]`.
    """
    for name, value in {"batch_size": batch_size, "length": length}.items():
        if value < 1:
            raise ValueError(f"{name} is {value}; it must be 1 or more.")
    scenes = encode_scenes(tokenizer)
    rng = np.random.default_rng(seed)
    drawn = 0
    while True:
        batch = np.empty((batch_size, length + 1), dtype=np.int64)
        for row in batch:
            _fill(row, rng, scenes, document_start=drawn % 2 == 0)
            drawn += 1
        yield batch


def _fill(row: np.ndarray, rng: np.random.Generator, scenes: EncodedScenes, document_start: bool) -> None:
    """Write one window into `row`."""
    position = 0
    if document_start:
        row[0], position = scenes.end_of_text, 1
    language = int(rng.random() >= START)
    while position < len(row):
        ends = scenes.cumulative[language, 1:]  # the scene is the first that ends beyond a point drawn from [0, total)
        scene = int(np.searchsorted(ends, rng.random() * ends[-1], side="right"))
        end = min(position + int(scenes.lengths[scene]), len(row))
        row[position:end] = scenes.ids[scene, : end - position]
        position = end
        if position == len(row):
            break
        if rng.random() < STOP:
            row[position] = scenes.end_of_text
            position += 1
            language = int(rng.random() >= START)
        elif rng.random() >= STAY:
            language = len(LANGUAGES) - 1 - language
