"""The token embedding of a built-in model over its training."""

from __future__ import annotations

from torch import Tensor

from lmcore import builtin
from lmcore.analysis.embedding.initial import initial_model
from lmcore.language_model import LanguageModel


def embedding_history(lm: LanguageModel) -> dict[int, Tensor]:
    """Return the token embedding [V, D] by number of training steps done, ascending, the trained one last.

    The default model ships with snapshots. Any other built-in model has its start, made again from the seed in its
    record, and its end. Of a model without a record nothing is known but the end: the dictionary is empty.

        tables = embedding_history(lmcore.load("small-world"))
        tables[0].std()                                     # the random start, about 0.02
    """
    if lm.name not in builtin.names():
        return {}
    trained = lm.model.token_embedding.weight.detach()
    training = builtin.record(lm.name)["training"]
    if lm.name == builtin.DEFAULT:
        earlier = builtin.embedding_snapshots()
    else:
        earlier = {0: initial_model(lm.config, training["seed"]).token_embedding.weight.detach()}
    return {**earlier, training["steps"]: trained}
