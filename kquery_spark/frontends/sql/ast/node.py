"""The base of every AST node: a frozen dataclass that knows where in the text it stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields


@dataclass(frozen=True)
class Node:
    """A piece of SQL. ``pos`` is its offset in the text, no part of equality, hashing or ``repr``."""

    pos: int = field(default=-1, kw_only=True, compare=False, repr=False)

    def children(self) -> Iterator[Node]:
        """The nodes directly below this one, in the order they are written."""
        for item in fields(self):
            yield from _nodes_in(getattr(self, item.name))


def _nodes_in(value: object) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes_in(item)


def walk(root: Node) -> Iterator[tuple[Node, int]]:
    """Every node below and including ``root`` with its depth (root 1), parents first, without recursion."""
    stack = [(root, 1)]
    while stack:
        node, depth = stack.pop()
        yield node, depth
        stack.extend((child, depth + 1) for child in node.children())
