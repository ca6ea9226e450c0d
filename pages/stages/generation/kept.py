"""What the session keeps of a generation, for pages that look at one of its steps. Looking changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from lmcore import SamplingSettings
from lmcore.generation.run import GenerationRun
from lmcore.generation.tree import Node
from pages.stages.generation import runs


@dataclass(frozen=True)
class KeptStep:
    """A token of a generation, and the distribution it came from.

    Attributes:
        position: where the token stands, counted from 0 at the start of the prompt.
        token_id: the token.
        token: its bytes.
        settings: what it was drawn with.
        by_hand: whether it was taken by hand instead of drawn.
        prompt_ids, generated_ids: the tokens before it.
    """

    position: int
    token_id: int
    token: bytes
    settings: SamplingSettings
    by_hand: bool
    prompt_ids: tuple[int, ...]
    generated_ids: tuple[int, ...]
    _run: GenerationRun
    _node: Node

    def logits(self) -> Tensor:
        """Return the logits [vocab_size] the token was drawn from; never change them in place."""
        return self._run.result(self._node).start.logits


def steps(model: str, prompt: str) -> list[KeptStep]:
    """Return the steps of the branch in view that the session keeps for a model and a prompt; [] without one."""
    run = runs.kept(model, prompt)
    path = run.tree.path(run.tip) if run else []
    ids = tuple(node.token_id for node in path)
    return [
        KeptStep(
            position=len(run.tree.prompt_ids) + index,
            token_id=node.token_id,
            token=node.token,
            settings=node.settings,
            by_hand=node.by_hand,
            prompt_ids=run.tree.prompt_ids,
            generated_ids=ids[:index],
            _run=run,
            _node=node,
        )
        for index, node in enumerate(path)
    ]
