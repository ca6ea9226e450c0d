"""The stages that come with lmcore, a family a file, in the default order."""

from lmcore.sampling.stage import Stage
from lmcore.sampling.stages.bias import LOGIT_BIAS
from lmcore.sampling.stages.chance import XTC
from lmcore.sampling.stages.dry import DRY
from lmcore.sampling.stages.heat import TEMPERATURE
from lmcore.sampling.stages.memory import ADAPTIVE_P, MIROSTAT
from lmcore.sampling.stages.penalties import FREQUENCY, PRESENCE, REPETITION
from lmcore.sampling.stages.relative import EPSILON, ETA, MIN_P, TOP_N_SIGMA
from lmcore.sampling.stages.shape import MIN_K, P_LESS, QUADRATIC, TAIL_FREE, TOP_A, TOP_H
from lmcore.sampling.stages.until import TOP_K, TOP_P, TYPICAL

__all__ = ["BUILT_IN"]

BUILT_IN: tuple[Stage, ...] = (
    *(LOGIT_BIAS, REPETITION, FREQUENCY, PRESENCE, DRY),
    *(TEMPERATURE, QUADRATIC),
    *(TOP_N_SIGMA, TOP_H, TOP_K, TOP_P, MIN_P, TYPICAL, EPSILON, ETA),
    *(TOP_A, TAIL_FREE, MIN_K, P_LESS),
    *(XTC, MIROSTAT, ADAPTIVE_P),
)
"""Edits of the logits, temperature, then the filters, and last those that draw by chance or steer."""
