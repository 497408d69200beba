"""Tables that map a class of syntax tree nodes, or a function's name, to its handler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

K = TypeVar("K")
H = TypeVar("H", bound=Callable[..., object])
F = TypeVar("F", bound=Callable[..., Any])


class HandlerTable(Generic[K, H]):
    """Keys and their handlers, filled by the decorator ``handles`` when the handlers' modules load."""

    def __init__(self) -> None:
        self._handlers: dict[K, H] = {}

    def handles(self, *keys: K) -> Callable[[F], F]:
        """Register a handler for keys; each key can have only one."""

        def add(handler: F) -> F:
            for key in keys:
                if key in self._handlers:
                    raise ValueError(f"{key} has two handlers")
                self._handlers[key] = handler  # type: ignore[assignment]
            return handler

        return add

    def get(self, key: K) -> H | None:
        """The handler of a key; None if it has none."""
        return self._handlers.get(key)
