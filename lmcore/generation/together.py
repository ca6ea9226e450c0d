"""Several texts of one length that go on from one prompt, in one pass of the model."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lmcore.kv_cache import KVCache
from lmcore.language_model import LanguageModel


def logits_after(lm: LanguageModel, prompt: Sequence[int], added: Sequence[Sequence[int]], cache: KVCache) -> Tensor:
    """Return the logits [text, vocab] after a prompt and what was added to it, for each of several texts.

    Args:
        lm: the language model.
        prompt: the ids that all begin with.
        added: the further ids of each text, of one length.
        cache: holds the texts as far as they have run, a row each; it is advanced. Where LongRoPE turns the keys of a
            text of the new length otherwise, the whole texts run again.
    """
    if lm.config.turns_anew(cache.length, len(prompt) + len(added[0])):
        cache.truncate(0)
    texts = [[*prompt, *ids][cache.length :] for ids in added]
    return lm(torch.tensor(texts), cache=cache)[:, -1]
