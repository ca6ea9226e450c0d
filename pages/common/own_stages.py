"""The operator's own stages of the sampler: files that are imported once, when the server starts."""

from __future__ import annotations

import logging
import os
from functools import cache
from pathlib import Path

from lmcore.sampling import StageFile, load_stages

VARIABLE = "GLASS_BOX_LM_STAGES"
"""The environment variable that names a Python file, or a folder of them, whose stages the lab shows."""

# What the lab's messages say beside the knobs, and what every object of JavaScript has already.
_RESERVED = {"against", "pinned", "bars", "log", "token", "answers", "message", "constructor"}


@cache
def load() -> tuple[StageFile, ...]:
    """Import the files at the first call, say in the log what is wrong with one, and return what became of each."""
    given = os.environ.get(VARIABLE)
    files = load_stages(Path(given).expanduser(), _RESERVED) if given else ()
    for file in files:
        if file.problem:
            message = "%s: %s could not be used, and the explorer goes on without its stages: %s"
            logging.getLogger(__name__).error(message, VARIABLE, file.path, file.problem, exc_info=file.error)
    return files
