"""What a text may be: a regular expression, a JSON schema or a list of choices limits the tokens that can be drawn.

    constraint.py   what was asked for
    vocabulary.py   a tokenizer as the grammar library reads it
    masks.py        the tokens that can follow a text under a constraint
    comparison.py   masking before the sampler, against drawing first and trying again

The masks come from llguidance, imported only where a constraint is used.
"""

from lmcore.constraints.comparison import Masking, compare
from lmcore.constraints.constraint import Constraint, ConstraintRefused
from lmcore.constraints.masks import Masks

__all__ = ["Constraint", "ConstraintRefused", "Masking", "Masks", "compare"]
