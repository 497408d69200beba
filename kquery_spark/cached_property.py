"""``cached_property`` without a lock.

Before Python 3.12, ``functools.cached_property`` computes a value under a lock that all objects of the class share. Some
properties decompress column chunks, and the lock would let only one thread do this at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # type checkers know the class of the standard library
    from functools import cached_property
else:
    from collections.abc import Callable
    from typing import Any

    class cached_property:
        """A property whose value is stored in the object's ``__dict__``, where later reads find it without ``__get__``.

        Threads that read the same property of an object at the same time may each compute it. ``dict.setdefault`` stores the
        first value, and all of these threads return it.
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
