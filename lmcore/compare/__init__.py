"""Two runs side by side: where they part first, and how far they are apart.

import lmcore

found = lmcore.compare("small-world", "small-world:bfloat16", "The king")
found.first_difference                 # "text", "ids", "logits", "settings", "draw" or None
print(found.sentence)                  # the same in a sentence
found.kl.a_b, found.total_variation, found.flips        # at each position, bits for the divergence

    side.py         a side: a model, what it reads, how it draws; `Side`, and what came of it
    served.py       a side that an engine runs: `Served`
    told.py         a side that was pasted, a request with its response: `told`
    answers.py      the answers of servers
    findings.py     what each stage says of the two
    alignment.py    positions at the same place of a text, tokens of the same bytes
    places.py       which positions are compared, and what is known of each side there
    candidates.py   the most probable tokens of both sides at one place, by one set of ids
    measures.py     divergence, total variation, flips, rank and margin at each place
    hidden.py       the residual streams, step by step
    comparison.py   `compare` and what it returns
    parts.py        which tensors of B make the difference: each swapped for A's

`lmcore.compare` is the function, and this package is imported from: `from lmcore.compare import Side`.
"""

from lmcore.compare import answers
from lmcore.compare.comparison import KL, Beside, Comparison, compare
from lmcore.compare.findings import NOTES, STAGES, Finding, Stage
from lmcore.compare.measures import Divergence
from lmcore.compare.parts import Swap, swaps
from lmcore.compare.served import Served
from lmcore.compare.side import Drawn, Run, Side
from lmcore.compare.told import Told, told

__all__ = [
    "KL",
    "NOTES",
    "STAGES",
    "Beside",
    "Comparison",
    "Divergence",
    "Drawn",
    "Finding",
    "Run",
    "Served",
    "Side",
    "Stage",
    "Swap",
    "Told",
    "compare",
    "swaps",
    "texts",
    "told",
]


def texts() -> set[str]:
    """Return every text of remarks that a page may show and translate."""
    return {*NOTES, *answers.PROBLEMS}
