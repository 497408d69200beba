"""Tables from a class of syntax tree nodes to the function that handles it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from kquery_spark.frontends.sql.ast.node import Node

H = TypeVar("H", bound=Callable[..., object])
F = TypeVar("F", bound=Callable[..., Any])


class HandlerTable(Generic[H]):
    """Node classes and their handlers, filled by the decorator ``handles`` when the handlers' modules load."""

    def __init__(self) -> None:
        self._handlers: dict[type[Node], H] = {}

    def handles(self, *classes: type[Node]) -> Callable[[F], F]:
        """Registers a function for node classes; a class can have only one."""

        def add(handler: F) -> F:
            for cls in classes:
                if cls in self._handlers:
                    raise ValueError(f"{cls.__name__} has two handlers")
                self._handlers[cls] = handler  # type: ignore[assignment]
            return handler

        return add

    def get(self, cls: type[Node]) -> H | None:
        """The handler of a class; None if it has none."""
        return self._handlers.get(cls)
