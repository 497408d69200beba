"""The base of every AST node: a frozen dataclass with its position in the string."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from kquery_spark.run_control import check_run


@dataclass(frozen=True)
class Node:
    """A node of the syntax tree. pos: its offset in the SQL string, or -1; equality, hashing and ``repr`` ignore it."""

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


T = TypeVar("T", bound=Node)


def rewrite(root: T, rule: Callable[[Node], Node]) -> T:
    """The tree with ``rule`` applied to every node, children first; what does not change stays the same object."""
    return _rewritten(root, rule)  # type: ignore[no-any-return]


def _rewritten(value: Any, rule: Callable[[Node], Node]) -> Any:
    if isinstance(value, tuple):
        return _rewritten_tuple(value, rule)
    if not isinstance(value, Node):
        return value
    check_run()
    before = {item.name: getattr(value, item.name) for item in fields(value)}
    after = {name: _rewritten(part, rule) for name, part in before.items()}
    changed = {name: part for name, part in after.items() if part is not before[name]}
    return rule(replace(value, **changed) if changed else value)


def _rewritten_tuple(items: tuple[Any, ...], rule: Callable[[Node], Node]) -> tuple[Any, ...]:
    new = tuple(_rewritten(item, rule) for item in items)
    return items if all(a is b for a, b in zip(new, items, strict=True)) else new


def walk(root: Node) -> Iterator[tuple[Node, int]]:
    """Yield ``root`` and all nodes below it, parents first, each with its depth (1 for the root), without recursion."""
    stack = [(root, 1)]
    while stack:
        check_run()
        node, depth = stack.pop()
        yield node, depth
        stack.extend((child, depth + 1) for child in node.children())
