"""What the tests of the position page share."""

from __future__ import annotations

import lmcore
from tests.pages.harness import opener

run = opener("position", prompt="小明喜欢小红")
ENCODINGS = {
    config.position_encoding: name
    for name, config in lmcore.builtin.configs().items()
    if config.tie_embeddings and config.n_experts is None
}
TITLES = {
    "rope": "RoPE",
    "learned": "Learned",
    "sinusoidal": "Sinusoidal",
    "relative": "Relative bias",
    "alibi": "ALiBi",
    "none": "None",
}
FEW = {"position.windows": "16"}  # of held-out text, so that a run is short
