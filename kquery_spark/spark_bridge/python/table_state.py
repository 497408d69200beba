"""Decides from its code whether a Python table function keeps state from row to row, without creating an instance.

Spark creates one instance for each partition of its rows, and the engine one for each of its tasks. The results are equal
if no method writes to the instance, or passes it on to code that might.
"""

from __future__ import annotations

import dis
import io
import pickle
from collections.abc import Iterator
from itertools import pairwise
from types import CodeType, FunctionType
from typing import Any

_NO_MEMBERS = frozenset(
    {
        *("__module__", "__doc__", "__dict__", "__weakref__", "__qualname__", "__annotations__"),
        *("__firstlineno__", "__static_attributes__", "__annotate__", "__annotate_func__", "__slotnames__"),
    }
)
"""The names that Python itself adds to the namespace of a class."""
_CONSTANTS = (int, float, complex, str, bytes, type(None))
_WRITES = frozenset({"STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "DELETE_GLOBAL"})
_READS = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_OF_VARIABLES = ("FAST", "DEREF", "CLOSURE", "CELL")
"""Substrings of the names of instructions that use local variables."""


def load_handler(command: bytes) -> type | None:
    """Unpickle a copy of a table function's class; None if the command does not contain it, or if it cannot be read.

    Unlike ``pickle.loads``, this does not overwrite the user's own class.
    """
    try:
        handler = _CopyingUnpickler(io.BytesIO(command)).load()
    except Exception:  # of the user's modules
        return None
    return handler if isinstance(handler, type) else None


def has_terminate(handler: type | None) -> bool:
    """Return whether a table function may return rows after the last row of a partition."""
    return handler is None or hasattr(handler, "terminate")


def keeps_state(handler: type | None) -> bool:
    """Return whether results of a table function may depend on earlier rows, judging by its code."""
    if handler is None or type(handler) is not type or has_terminate(handler):
        return True
    members = [
        (name, value)
        for base in handler.__mro__[:-1]
        for name, value in vars(base).items()
        if name not in _NO_MEMBERS
    ]
    names = frozenset(name for name, _ in members)
    return any(_is_stateful(name, value, names) for name, value in members)


class _CopyingUnpickler(pickle.Unpickler):
    """Creates a new class where cloudpickle would find and overwrite the existing one."""

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name)
        if name != "_make_skeleton_class":
            return found

        def make_skeleton(
            constructor: Any, name: str, bases: Any, keywords: Any, tracker: Any, extra: Any
        ) -> Any:
            if constructor is not type or any(_sees_subclasses(base) for base in bases):
                raise pickle.UnpicklingError(f"a copy of {name} would be seen by its base or its metaclass")
            return found(constructor, name, bases, keywords, None, extra)

        return make_skeleton


def _sees_subclasses(base: type) -> bool:
    """Return whether a class has code that runs when a class is derived from it."""
    return any("__init_subclass__" in vars(above) for above in base.__mro__[:-1])


def _is_stateful(name: str, value: object, members: frozenset[str]) -> bool:
    if name == "analyze" or isinstance(value, _CONSTANTS):
        return False
    if isinstance(value, staticmethod):
        function = value.__func__
        return not isinstance(function, FunctionType) or _writes(function.__code__)
    if not isinstance(value, FunctionType) or name.startswith("__"):
        return True
    code = value.__code__
    is_hidden = not code.co_argcount or "__class__" in code.co_freevars  # as super() reads it
    return is_hidden or _writes(code) or _passes_instance_on(code, code.co_varnames[0], members)


def _writes(code: CodeType) -> bool:
    """Return whether a function, or one inside of it, writes to attributes or global variables."""
    return any(i.opname in _WRITES for part in _codes(code) for i in dis.get_instructions(part))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _passes_instance_on(code: CodeType, instance: str, members: frozenset[str]) -> bool:
    """Return whether a method uses the instance for anything other than reading members of its class.

    For example, ``self.scale`` compiles to ``LOAD_FAST self, LOAD_ATTR scale``, which is allowed if ``scale`` is a
    member. In ``f(self)``, another instruction follows the load, so ``f`` might change the instance. Some releases of
    Python combine loads, as in ``LOAD_FAST_LOAD_FAST (a, self)``. Then the next instruction reads the last variable.
    """
    instructions = list(dis.get_instructions(code))
    for instruction, following in pairwise(instructions):
        value = instruction.argval
        names = value if isinstance(value, tuple) else (value,)
        if instance not in names or not any(word in instruction.opname for word in _OF_VARIABLES):
            continue
        loads_last = instruction.opname.startswith(("LOAD_FAST", "STORE_FAST_LOAD")) and names[-1] == instance
        if not loads_last or instance in names[:-1]:
            return True
        if following.opname not in _READS or following.argval not in members:
            return True
    return False
