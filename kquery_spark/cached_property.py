"""``cached_property`` without a lock.

Before Python 3.12, ``functools.cached_property`` computes a value under a lock that all objects of the class share.
Tasks that run as threads decompress different column chunks in such properties, and the lock would make them take turns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from functools import cached_property
else:
    from collections.abc import Callable
    from typing import Any

    class cached_property:
        """A property that is computed once and kept in the object's ``__dict__``.

        Threads that ask for the same property of one object at the same time may each compute it. All of them get the same
        value, that of the first one.
        """

        def __init__(self, compute: Callable[[Any], Any]) -> None:
            self._compute = compute
            self.__doc__ = compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            return instance.__dict__.setdefault(self._name, self._compute(instance))


__all__ = ["cached_property"]
