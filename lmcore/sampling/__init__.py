"""From logits to a drawn token: settings, stages, presets of engines, and drawing.

    stage.py        what a stage is: one declaration
    stages/         the declarations, a family a file
    registry.py     every stage there is, and those of your own
    files.py        stages of your own, from Python files
    settings.py     the knobs, checked by the declarations
    rules.py        where engines differ under the same knobs
    presets/        how engines set them
    candidates.py   the tokens still in play and their distribution
    falling.py      many positions at once
    sorted_rows.py  their logits, sorted, and sums over any stretch of them
    around.py       the tokens nearest to a value, at many positions
    nucleus.py      keep the first tokens until their probability adds up
    chain.py        `reshape`: run the stages, keep what each did
    draw.py         draw tokens; compare what was drawn with what was expected

Pure functions of logits: nothing here knows of a model or of text.
"""

from lmcore.sampling.candidates import Candidates
from lmcore.sampling.chain import ONE_CANDIDATE, AppliedStage, Reshaped, State, Way, reshape
from lmcore.sampling.draw import ChiSquare, chi_square, draw, draw_many, draws, new_generator
from lmcore.sampling.falling import Falling
from lmcore.sampling.files import StageFile, load_stages
from lmcore.sampling.presets import ENGINES, PRESETS, Engine, Preset, preset
from lmcore.sampling.registry import NOTES, OFF, STAGES, register, unregister
from lmcore.sampling.rules import Rules
from lmcore.sampling.settings import SamplingSettings, given_fields
from lmcore.sampling.stage import Branch, Context, Edit, Field, History, Ids, Note, Range, Stage, span

__all__ = [
    "ENGINES",
    "NOTES",
    "OFF",
    "ONE_CANDIDATE",
    "PRESETS",
    "STAGES",
    "Branch",
    "Candidates",
    "ChiSquare",
    "Context",
    "Edit",
    "Engine",
    "Falling",
    "Field",
    "History",
    "Ids",
    "Note",
    "Preset",
    "Range",
    "Reshaped",
    "Rules",
    "SamplingSettings",
    "Stage",
    "StageFile",
    "State",
    "AppliedStage",
    "Way",
    "chi_square",
    "draw",
    "draw_many",
    "draws",
    "given_fields",
    "load_stages",
    "new_generator",
    "preset",
    "register",
    "reshape",
    "span",
    "unregister",
]
