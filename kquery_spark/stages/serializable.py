"""The allow-list of serialized plans: classes, their fields, and type checks for field values.

Every concrete frozen dataclass below the base classes of plans is found automatically, and so is every class or enum in the
annotations of its fields. A new node needs no change here.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import threading
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from enum import Enum
from operator import attrgetter
from typing import Any

import pyarrow as pa

from kquery_spark import expr, logical, sources
from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import SerializationError
from kquery_spark.expr import AggregateCall, Call, Expr
from kquery_spark.logical import LogicalPlan
from kquery_spark.logical.plan import BinaryPlan, UnaryPlan
from kquery_spark.physical import operators
from kquery_spark.physical.operators import PhysicalPlan
from kquery_spark.physical.operators.base import BinaryExec, UnaryExec
from kquery_spark.sources.base import Source
from kquery_spark.sources.memory import MemorySource
from kquery_spark.stages.graph import Stage, StageGraph, TaskSplits

_BASES: tuple[type, ...] = (Expr, LogicalPlan, PhysicalPlan, Source)
_ABSTRACT_CLASSES = frozenset({*_BASES, UnaryPlan, BinaryPlan, UnaryExec, BinaryExec})
_PLAN_PACKAGES = (expr, logical, operators, sources)
_ROOTS: tuple[type, ...] = (EngineConfig, Stage, StageGraph, TaskSplits)
_OUR_PACKAGE = __name__.partition(".")[0]

# Fields that are annotated with Any hold plain values, except for these.
_FIELD_TYPES: dict[tuple[type, str], Any] = {(MemorySource, "table"): pa.Table}
_PLAIN = frozenset({type(None), bool, int, float, str, bytes, Decimal})

Test = Callable[[Any], bool]


@dataclass(frozen=True)
class ClassFormat:
    """How a class is serialized.

    fields: its field names in order. values: returns the field values of an object. tests: for each field, a check of all
    values of a block at once. check: an additional check of each object.
    """

    cls: type
    name: str
    fields: tuple[str, ...]
    values: Callable[[Any], tuple[Any, ...]]
    tests: tuple[Callable[[Sequence[Any]], bool], ...]
    check: Callable[[Any], object] | None


class Registry:
    """The allow-list: serialization formats by class and by name, enums by name."""

    def __init__(self) -> None:
        self.formats: dict[type, ClassFormat] = {}
        self.by_name: dict[str, ClassFormat] = {}
        self.enums: dict[str, type[Enum]] = {}
        self.enum_names: dict[type, str] = {}
        self._types: dict[type, str] = {}
        for package in _PLAN_PACKAGES:
            _import_all(package)
        for base in _BASES:
            for cls in _all_subclasses(base):
                if cls.__module__.partition(".")[0] == _OUR_PACKAGE and is_plan_class(cls):
                    self.add(cls)
        for cls in _ROOTS:
            self.add(cls)

    def add(self, cls: type, name: str | None = None) -> None:
        """Allow a class, and every class of this package in the annotations of its fields."""
        pending = [(cls, name or cls.__name__)]
        classes = []
        while pending:
            each, label = pending.pop()
            if each in self._types:
                continue
            self._claim_name(each, label)
            if issubclass(each, Enum):
                self.enums[label] = each
                self.enum_names[each] = label
                continue
            classes.append((each, label))
            for annotation in _annotations(each).values():
                pending += [(c, c.__name__) for c in _classes_in(annotation)]
        self.formats.update({each: self._format(each, label) for each, label in classes})
        self.by_name = {f.name: f for f in self.formats.values()}

    def _claim_name(self, cls: type, name: str) -> None:
        holder = next((c for c, n in self._types.items() if n == name), None)
        if holder is not None:
            raise SerializationError(f"{cls.__qualname__} and {holder.__qualname__} are both called {name}")
        self._types[cls] = name

    def _format(self, cls: type, name: str) -> ClassFormat:
        annotations = _annotations(cls)
        names = tuple(annotations)
        check = _entry if issubclass(cls, Call | AggregateCall) else None
        tests = tuple(_column_test(_test(a, f"{name}.{n}")) for n, a in annotations.items())
        return ClassFormat(cls, name, names, _getter(names), tests, check)


def is_plan_class(cls: type) -> bool:
    """True if the class is a concrete frozen dataclass, which every class in a plan has to be."""
    own = cls.__dict__
    frozen = "__dataclass_params__" in own and own["__dataclass_params__"].frozen
    return frozen and cls not in _ABSTRACT_CLASSES and not inspect.isabstract(cls)


_lock = threading.RLock()
_registry: Registry | None = None
_registered: list[type] = []


def registry() -> Registry:
    """Return the allow-list of this process, which is built on first use."""
    global _registry
    with _lock:
        if _registry is None:
            allow_list = Registry()
            for cls in _registered:
                allow_list.add(cls, _user_name(cls))
            _registry = allow_list
        return _registry


def register_serializable(cls: type) -> type:
    """Allow your own class (for example a ``Source``) in serialized plans. It can be used as a decorator.

    The class must be a frozen dataclass whose fields are annotated with plain values, Arrow types, tuples and other allowed
    classes. The process that reads a plan has to register it, too. Raises SerializationError if the class cannot be
    serialized.
    """
    if not is_plan_class(cls):
        raise SerializationError(f"{cls.__qualname__} is not a concrete frozen dataclass")
    with _lock:
        if cls not in _registered:
            registry().add(cls, _user_name(cls))
            _registered.append(cls)
    return cls


def registered_classes() -> tuple[type, ...]:
    """Return the classes that were registered, so that workers can register the same ones."""
    return tuple(_registered)


def _user_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _import_all(package: types.ModuleType) -> None:
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)


def _all_subclasses(cls: type) -> Iterator[type]:
    sub: type
    for sub in cls.__subclasses__():
        yield sub
        yield from _all_subclasses(sub)


def _entry(node: Any) -> object:
    """Look up the function of a call; raises PlanError if this version does not have it."""
    return node.entry


def _annotations(cls: type) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {f.name: _FIELD_TYPES.get((cls, f.name), hints[f.name]) for f in fields(cls) if f.init}


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, n) for n in names)


def _classes_in(annotation: Any) -> Iterator[type]:
    """Yield the classes of this package and the enums in an annotation."""
    for argument in typing.get_args(annotation):
        yield from _classes_in(argument)
    if not isinstance(annotation, type) or typing.get_origin(annotation) is not None:
        return
    ours = annotation.__module__.partition(".")[0] == _OUR_PACKAGE
    if issubclass(annotation, Enum) or (ours and is_plan_class(annotation)):
        yield annotation


def _test(annotation: Any, label: str) -> Test | type:
    """Return a check for values of the annotated type, or a class if values must have exactly this type."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is Any:
        return _is_plain
    if origin in (typing.Union, types.UnionType):
        return _any_of([_test(a, label) for a in arguments])
    if origin is typing.Literal:
        return _literal_test(arguments)
    if origin is tuple:
        return _tuple_test(arguments, label)
    if annotation is float:
        return _any_of([float, int])
    if annotation in (pa.DataType, *_BASES):
        return lambda value: isinstance(value, annotation)
    if isinstance(annotation, type) and _is_final(annotation):
        return annotation
    raise SerializationError(f"{label} is annotated {annotation}, which has no serialized form")


def _literal_test(allowed: tuple[Any, ...]) -> Test:
    return lambda value: any(type(value) is type(a) and value == a for a in allowed)


def _tuple_test(items: tuple[Any, ...], label: str) -> Test:
    """Return the check for ``tuple[item, ...]`` (any length) or for ``tuple[first, second]`` (exactly these items)."""
    if len(items) == 2 and items[1] is Ellipsis:
        every = _column_test(_test(items[0], label))
        return lambda value: type(value) is tuple and every(value)
    tests = [_single(_test(a, label)) for a in items]
    return lambda value: (
        type(value) is tuple
        and len(value) == len(tests)
        and all(test(v) for test, v in zip(tests, value, strict=True))
    )


def _is_final(cls: type) -> bool:
    """True if values of the class have exactly this type, never that of a subclass."""
    return cls in _PLAIN or cls in (pa.Schema, pa.Table) or issubclass(cls, Enum) or is_plan_class(cls)


def _single(test: Test | type) -> Test:
    return (lambda value: type(value) is test) if isinstance(test, type) else test


def _any_of(tests: list[Test | type]) -> Test:
    exact = frozenset(t for t in tests if isinstance(t, type))
    others = [t for t in tests if not isinstance(t, type)]
    return lambda value: type(value) in exact or any(t(value) for t in others)


def _column_test(test: Test | type) -> Callable[[Sequence[Any]], bool]:
    """Return a check for many values at once. If only the types matter, it compares the set of types."""
    if isinstance(test, type):
        only = frozenset({test})
        return lambda values: only.issuperset(map(type, values))
    if test is _is_plain:
        return lambda values: _PLAIN.issuperset(map(type, values)) or all(map(_is_plain, values))
    return lambda values: all(map(test, values))


def _is_plain(value: Any) -> bool:
    """True if the value is a scalar, or a tuple of plain values (to any depth)."""
    pending = [value]
    while pending:
        each = pending.pop()
        if type(each) is tuple:
            pending += each
        elif type(each) not in _PLAIN:
            return False
    return True
