"""Every continuation of a prompt that was tried, as a tree of tokens, whoever drew them.

    prompt --- I --- like --- tea        a node is a token; the path to it is a text
                 \\
                  `--- am                 a leaf is the end of a branch
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar


@dataclass(eq=False, slots=True)
class TextNode:
    """One token of the tree; the root stands for the whole prompt and has no token.

    Attributes:
        parent: the node before; None for the root.
        token_id: the token; None where its source names tokens by their text alone.
        token: its bytes; b"" where its source does not tell them.
        settings: what it was drawn with; None where it was not drawn.
        by_hand: whether the reader took it instead of letting it be drawn.
        log_prob: ln of its probability under the model itself, at temperature 1; None where it is not told.
        rank: its rank under the model itself, 1 for the most probable token; None where it is not told.
        name: what the reader calls the branch that passes here; "" for no name.
        children: what followed, in the order it was tried.
        depth: how many tokens after the prompt this is; 0 for the root.
    """

    parent: Self | None
    token_id: int | None = None
    token: bytes = b""
    settings: Any = None
    by_hand: bool = False
    log_prob: float | None = None
    rank: int | None = None
    name: str = ""
    children: list[Self] = field(default_factory=list, repr=False)
    depth: int = field(init=False)

    def __post_init__(self) -> None:
        self.depth = 0 if self.parent is None else self.parent.depth + 1

    def asked(self) -> tuple[Any, ...]:
        """Return what the token is and all that it was drawn with: after one parent, two of these alike are one."""
        return self.token_id, self.token, self.settings

    def lineage(self) -> Iterator[Self]:
        """Iterate from this node back to the root."""
        node: Self | None = self
        while node is not None:
            yield node
            node = node.parent

    def path(self) -> list[Self]:
        """Return the nodes from the first token after the prompt to this one."""
        return list(self.lineage())[-2::-1]


AnyNode = TypeVar("AnyNode", bound=TextNode)


@dataclass(frozen=True, eq=False)
class Pruned(Generic[AnyNode]):
    """What was cut off, and where it was: `TextTree.graft` puts it back."""

    node: AnyNode
    index: int


class TextTree(Generic[AnyNode]):
    """All continuations of one prompt.

    Args:
        root: the node that stands for the prompt.
    """

    def __init__(self, root: AnyNode) -> None:
        self.root = root

    def path(self, node: AnyNode) -> list[AnyNode]:
        """Return the nodes from the first token after the prompt to this one."""
        return node.path()

    def nodes(self) -> list[AnyNode]:
        """Return all nodes, the root first, parents before their children, a branch at a time."""
        found, waiting = [], [self.root]
        while waiting:
            found.append(node := waiting.pop())
            waiting.extend(reversed(node.children))
        return found

    def leaves(self) -> list[AnyNode]:
        """Return the ends of all branches, in the order in which the branches were begun."""
        return [node for node in self.nodes() if not node.children]

    def branch_start(self, leaf: AnyNode) -> AnyNode:
        """Return the first node that belongs to this branch alone; the root in a tree of one branch without tokens."""
        node = leaf
        while node.parent is not None and node.parent.parent is not None and len(node.parent.children) == 1:
            node = node.parent
        return node

    def branch_name(self, leaf: AnyNode) -> str:
        """Return what the reader calls a branch: the last name given on the part that belongs to it alone."""
        start = self.branch_start(leaf)
        for node in leaf.lineage():
            if node.name or node is start:
                return node.name
        return ""

    def add(self, node: AnyNode) -> AnyNode:
        """Put a token after its parent and return it, or the same one with the same settings that is there already."""
        assert node.parent is not None
        for child in node.parent.children:
            if child.asked() == node.asked() and (
                node.token_id is not None or node.token
            ):  # one of which nothing is told may be any token
                return child
        node.parent.children.append(node)
        return node

    def prune(self, node: AnyNode) -> Pruned[AnyNode]:
        """Cut off a node and all that follows it.

        Raises:
            ValueError: for the root.
        """
        if node.parent is None:
            raise ValueError("the root stands for the prompt and cannot be pruned.")
        index = node.parent.children.index(node)
        del node.parent.children[index]
        return Pruned(node, index)

    def graft(self, pruned: Pruned[AnyNode]) -> None:
        """Put back what `prune` cut off."""
        assert pruned.node.parent is not None
        pruned.node.parent.children.insert(pruned.index, pruned.node)
