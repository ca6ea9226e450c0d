"""LanguageModel: a model together with its tokenizer, as `lmcore.load` returns it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor

from lmcore.chat.template import ChatTemplate
from lmcore.config import ModelConfig
from lmcore.kv_cache import KVCache
from lmcore.model import Model
from lmcore.model_card import ModelCard
from lmcore.tokenizer import Tokenizer
from lmcore.trace import Edit, Trace


def as_ids(ids: Sequence[int] | Sequence[Sequence[int]] | Tensor) -> Tensor:
    """Return token ids as int64 [S] or [B, S].

    Raises:
        TypeError: for text and other things that are no ids.
        ValueError: for texts of different lengths in one batch.

    >>> as_ids([3, 1, 4])
    tensor([3, 1, 4])
    """
    if isinstance(ids, (str, bytes)):
        raise TypeError("ids is text; give token ids: lm.tokenizer.encode(text).ids")
    if not isinstance(ids, Tensor) and isinstance(ids, Sequence):
        lengths = sorted({len(row) for row in ids if isinstance(row, Sequence) and not isinstance(row, str)})
        if len(lengths) > 1:
            raise ValueError(
                f"ids holds texts of {', '.join(map(str, lengths[:-1]))} and {lengths[-1]} tokens; "
                "a batch is texts of one length: run these one at a time."
            )
    try:
        given = torch.as_tensor(ids)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(
            f"ids must be whole numbers, as in lm.tokenizer.encode(text).ids, got {_shortened(ids)}"
        ) from None
    if given.numel() and (given.ndim == 0 or given.dtype.is_floating_point or given.dtype in _NO_IDS):
        raise TypeError(f"ids must be a list of whole numbers, one for each token, got {_shortened(ids)}")
    return given.long()


_NO_IDS = (torch.bool, torch.complex64, torch.complex128)


def _shortened(ids: object) -> str:
    return f"a {type(ids).__name__}: {str(ids)[:40]!r}"


class LanguageModel:
    """A model, its tokenizer and its name.

    Calling it runs the model in evaluation, without gradients:

        logits = lm(lm.tokenizer.encode("今天天气").ids)      # [S, vocab_size] float32

    Attributes:
        end_tokens: the ids that end a generation, as the model's files say; where they say nothing, all control tokens.
        card: what else they say, a `ModelCard`.
        chat_template: what writes a conversation as a text; None for a model that brings none.
    """

    def __init__(
        self,
        name: str,
        model: Model,
        tokenizer: Tokenizer,
        end_tokens: Iterable[int] = (),
        card: ModelCard | None = None,
        chat_template: ChatTemplate | None = None,
    ) -> None:
        if tokenizer.vocab_size != model.config.vocab_size:
            raise ValueError(
                f"{name}: the tokenizer has {tokenizer.vocab_size} tokens, the model's vocab_size is "
                f"{model.config.vocab_size}; they do not belong together."
            )
        self.name = name
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.end_tokens = tuple(end_tokens) or tuple(tokenizer.special_tokens.values())
        self.card = card or ModelCard()
        self.chat_template = chat_template

    @property
    def config(self) -> ModelConfig:
        """The model's config."""
        return self.model.config

    def __call__(
        self,
        ids: Sequence[int] | Sequence[Sequence[int]] | Tensor,
        trace: Trace | None = None,
        cache: KVCache | None = None,
        edits: Mapping[str, Edit] | None = None,
    ) -> Tensor:
        """Return the logits of the next token at every position.

        Args:
            ids: token ids [S] or [B, S].
            trace: filled with every intermediate when given.
            cache: when given, ids continue the tokens it holds, and it is advanced.
            edits: name of an intermediate -> a function of it whose result is put in its place. The model is left
                as it is: `lm(ids, edits={"blocks.2.mlp.out": torch.zeros_like})` runs it once without that MLP.

        Returns:
            Logits float32 [S, vocab_size] or [B, S, vocab_size].

        Raises:
            TypeError: for text in place of ids, see `as_ids`.
            ValueError: for no ids, ids out of range, more tokens than context_length, texts of different lengths, or
                edits of names that do not occur.
        """
        with torch.inference_mode():
            return self.model(as_ids(ids), trace, cache, edits).float()

    def last_logits(self, ids: Sequence[int], n: int) -> Tensor:
        """Return the logits [n, vocab_size] at the last n positions alone: those of all would fill the memory.

        Args:
            ids: token ids [S].
            n: how many positions, 1 to S.

        Raises:
            TypeError, ValueError: as calling the model.
        """
        with torch.inference_mode():
            return self.model.unembed(self.model.hidden_state(as_ids(ids))[-n:]).float()

    def new_cache(self, capacity: int | None = None) -> KVCache:
        """Return an empty KV cache for up to `capacity` tokens (default: context_length); it grows with the text."""
        return KVCache(self.config, capacity)

    def __repr__(self) -> str:
        return f"LanguageModel({self.name!r}, vocab_size={self.config.vocab_size}, n_layers={self.config.n_layers})"
