"""Values by node of a plan, an operator tree or an expression."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class NodeMap(Generic[Value]):
    """A mapping whose keys are nodes themselves, not what they equal: two equal scans of one table are two nodes.

    Nodes are kept alive, as another one could get the identity of one that is gone. No node is hashed or compared, which
    would walk the whole plan below it.
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
        """The node's value, or None."""
        entry = self._entries.get(id(node))
        return None if entry is None else entry[1]

    def setdefault(self, node: object, make: Callable[[], Value]) -> Value:
        """The node's value, which ``make`` computes at first."""
        entry = self._entries.get(id(node))
        if entry is None:
            entry = self._entries[id(node)] = node, make()
        return entry[1]
