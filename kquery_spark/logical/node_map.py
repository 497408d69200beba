"""A mapping from nodes (of a plan, an operator tree or an expression) to values, by identity."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class NodeMap(Generic[Value]):
    """A mapping with the identity of nodes as keys: two equal scans of one table are two different keys.

    The map never hashes or compares nodes, because that would walk the whole plan below each of them. It holds references
    to its nodes, so that ``id()`` of a freed node cannot be reused by another one.
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[Any, Value]] = {}

    def __contains__(self, node: object) -> bool:
        return id(node) in self._entries

    def __iter__(self) -> Iterator[Any]:
        return (node for node, _ in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def __setitem__(self, node: object, value: Value) -> None:
        self._entries[id(node)] = node, value

    def __getitem__(self, node: object) -> Value:
        return self._entries[id(node)][1]

    def get(self, node: object) -> Value | None:
        """Return the node's value, or None."""
        entry = self._entries.get(id(node))
        return None if entry is None else entry[1]

    def setdefault(self, node: object, make: Callable[[], Value]) -> Value:
        """Return the node's value; on the first call, ``make`` computes it."""
        entry = self._entries.get(id(node))
        if entry is None:
            entry = self._entries[id(node)] = node, make()
        return entry[1]
