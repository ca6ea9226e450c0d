"""Which positions of two runs are compared, and what is known of each side at one of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from torch import Tensor

from lmcore.compare.alignment import aligned, first_difference
from lmcore.compare.findings import same_words
from lmcore.compare.side import Forward, LocalRun, Run
from lmcore.compare.tokens_of_both import At, TokensOfBoth
from lmcore.compare.told import Told
from lmcore.engines.agreement import id_of_text
from lmcore.engines.top_tokens import TopTokens

__all__ = ["Places"]


class Places:
    """The positions of A and of B at the same place of the text, of which both tell something.

    After a pasted request's prompt come the tokens of its answer, which the other side is given too.

    Attributes:
        candidates: the tokens of both sides by one set of ids.
    """

    def __init__(self, a: Run, b: Run, forward: Forward) -> None:
        self._a, self._b, self._forward = a, b, forward
        self.tokens = TokensOfBoth(a, b)

    @cached_property
    def same_vocabulary(self) -> bool:
        """Whether an id is the same token on both sides."""
        return same_words(self._a, self._b)

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """A position of A with the one of B, in order."""
        if isinstance(self._a, Told) or isinstance(self._b, Told):
            if not all(self._can_read(run) for run in (self._a, self._b) if isinstance(run, LocalRun)):
                return ()
            pairs = [(i, i) for i in range(self._prompt - 1, self._prompt + len(self._answer))]
        elif self._a.ids is None or self._b.ids is None:
            return ()
        elif self.same_vocabulary and self._a.ids == self._b.ids:
            pairs = [(i, i) for i in range(len(self._a.ids))]
        else:
            pairs = aligned(self._a.tokens or (), self._b.tokens or ())
        return tuple((i, j) for i, j in pairs if self._tells(self._a, i) and self._tells(self._b, j))

    @property
    def are_told(self) -> bool:
        """Whether one side is a server's, which tells its most probable tokens only."""
        return not (isinstance(self._a, LocalRun) and isinstance(self._b, LocalRun))

    def logits(self, run: Run) -> Tensor | None:
        """Return the logits [S, V] of a side that is here, after every position; of any other None."""
        if not isinstance(run, LocalRun):
            return None
        other = self._b if run is self._a else self._a
        ids = (*(other.ids or run.ids), *self._answer) if isinstance(other, Told) else run.ids
        return run.logits if ids == run.ids else self._forward(run.lm, ids)

    def at(self, run: Run, position: int) -> At:
        """Return what is known of a side at one of its positions."""
        logits = self.logits(run)
        return At(None, self._told_by(run)[position]) if logits is None else At(logits[position], None)

    def _tells(self, run: Run, position: int) -> bool:
        if isinstance(run, LocalRun):
            return True
        told = self._told_by(run)
        return position in told and self.tokens.are_told(told[position], run)

    def _told_by(self, run: Run) -> Mapping[int, TopTokens]:
        return run.places_after(self._prompt) if isinstance(run, Told) else run.places

    def _can_read(self, run: LocalRun) -> bool:
        """Whether a local model takes the tokens that the pasted side tells."""
        ids = next((each.ids for each in (self._a, self._b) if isinstance(each, Told) and each.ids), run.ids)
        whole, config = (*ids, *self._answer), run.lm.config
        return len(whole) <= config.context_length and all(0 <= i < config.vocab_size for i in whole)

    @cached_property
    def _prompt(self) -> int:
        """How many tokens a pasted request's prompt has: as it says, or as the other side cuts it."""
        told_ids = next((run.ids for run in (self._a, self._b) if isinstance(run, Told) and run.ids), None)
        ids = told_ids or next((run.ids for run in (self._a, self._b) if not isinstance(run, Told)), None)
        return len(ids) if ids else 1

    @cached_property
    def _answer(self) -> tuple[int, ...]:
        """The tokens of a pasted answer but the last, by id: what the places after the prompt stand behind."""
        answers = [run.drawn for run in (self._a, self._b) if isinstance(run, Told)]
        if len(answers) == 2:  # as long as the two answers are the same
            same = first_difference(*([each.token for each in answer] for answer in answers))
            return tuple(range(min(map(len, answers)) - 1 if same is None else same))
        tokenizer = next((run.tokenizer for run in (self._a, self._b) if run.tokenizer is not None), None)
        found = []
        for each in answers[0][:-1] if answers else ():
            token_id = each.token_id
            if token_id is None and tokenizer is not None:
                token_id = id_of_text(tokenizer, each.token.decode(errors="replace"))
            if token_id is None or (tokenizer is not None and token_id >= tokenizer.vocab_size):
                break
            found.append(token_id)
        return tuple(found)
