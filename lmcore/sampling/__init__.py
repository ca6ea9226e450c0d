"""From logits to a drawn token: settings, stages, engine presets, and drawing.

    settings.py     the knobs, their order, and the rules engines differ in
    presets.py      how six engines set them
    candidates.py   the tokens still in play and their distribution
    nucleus.py      keep the first tokens until their probability adds up
    stages.py       one function for each stage
    chain.py        `reshape`: run the stages, keep what each did
    draw.py         draw tokens; compare what was drawn with what was expected

Pure functions of logits: nothing here knows of a model or of text.
"""

from lmcore.sampling.candidates import Candidates
from lmcore.sampling.chain import ONE_CANDIDATE, Reshaped, Step, reshape
from lmcore.sampling.draw import ChiSquare, chi_square, draw, draw_many, draws, new_generator
from lmcore.sampling.presets import ENGINES, Engine, preset
from lmcore.sampling.settings import OFF, STAGES, Rules, SamplingSettings
from lmcore.sampling.stages import NOTES, History, Note

__all__ = [
    "ENGINES",
    "NOTES",
    "OFF",
    "ONE_CANDIDATE",
    "STAGES",
    "Candidates",
    "ChiSquare",
    "Engine",
    "History",
    "Note",
    "Reshaped",
    "Rules",
    "SamplingSettings",
    "Step",
    "chi_square",
    "draw",
    "draw_many",
    "draws",
    "new_generator",
    "preset",
    "reshape",
]
