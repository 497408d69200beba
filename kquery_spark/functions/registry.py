"""The function registry. Each scalar function is one entry with its names, type rule, NULL rule and kernel.

The SQL analyzer, the DataFrame API, the Catalyst importer, type derivation, the expression compiler and the documentation
all read the entries. So to add a function means to add one entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import pyarrow as pa

from kquery_spark.errors import PlanError
from kquery_spark.functions.call_form import register_calls
from kquery_spark.functions.evaluation import (
    ALWAYS_RAISES,
    ANSI_RAISES,
    COLUMN,
    Branching,
    CallContext,
    EvalMode,
    Evaluation,
    Kernel,
)
from kquery_spark.functions.nullability import Nullability
from kquery_spark.functions.planning import Constructor, Planning, Simplification
from kquery_spark.functions.spark_form import (
    NO_PARAMETERS,
    CatalystParameters,
    JavaMethod,
    SparkForm,
    VersionChange,
)
from kquery_spark.functions.sql_form import NO_OPERATOR, Operator, SqlForm
from kquery_spark.functions.type_rules import (
    ArgumentTypeError,
    Coercion,
    TypeRule,
    accept,
    cast_to,
    depends_on_values,
    first_argument_type,
    fixed,
    given_schema,
)

#: The names that a module of functions needs to declare its entries.
__all__ = [
    "ALWAYS_RAISES",
    "ANSI_RAISES",
    "COLUMN",
    "NO_OPERATOR",
    "NO_PARAMETERS",
    "ArgumentTypeError",
    "Branching",
    "CallContext",
    "CatalystParameters",
    "Coercion",
    "Constructor",
    "EvalMode",
    "Function",
    "JavaMethod",
    "Kernel",
    "Nullability",
    "Operator",
    "Simplification",
    "TypeRule",
    "VersionChange",
    "accept",
    "cast_to",
    "date_field_function",
    "depends_on_values",
    "first_argument_type",
    "fixed",
    "for_catalyst",
    "for_java_method",
    "function",
    "functions",
    "given_schema",
    "has_function",
    "interval_field_function",
    "is_internal",
    "operator_function",
    "register",
    "register_internal",
    "unit_function",
]


@dataclass(frozen=True)
class Function(SqlForm, SparkForm, Evaluation, Planning):
    """One scalar function.

    Its facets are how it is written (``SqlForm``), how Spark's plans represent it (``SparkForm``), how it is evaluated
    (``Evaluation``), and what the optimizer knows of it (``Planning``). The fields of the facets are keyword arguments here.

    name: Spark SQL's name in lower case.
    kernel: maps vectors to a pa.Array or pa.Scalar in a physical form of the result type.
    result: computes the result type from the argument types, or raises PlanError. result_of: the same if the type also
    depends on literal arguments (the scale of ROUND); it replaces ``result``.
    arity: minimum and maximum number of arguments (None: any number).
    nullable: when the result is NULL.
    coerce: the types that frontends cast the arguments to (Spark's implicit casts); identity by default.
    takes_variants: True if an argument may be a variant. zones: positions of the arguments that name time zones.
    """

    name: str
    kernel: Kernel
    result: TypeRule
    result_of: Callable[[Sequence[pa.DataType], Sequence[object]], pa.DataType] | None = None
    arity: tuple[int, int | None] = (1, 1)
    nullable: Nullability = Nullability.ANY_ARGUMENT
    coerce: Coercion | None = None
    takes_variants: bool = False
    zones: tuple[int, ...] = ()

    @property
    def is_comparison(self) -> bool:
        """True if the function compares two values."""
        return bool(self.operator.flipped)

    @property
    def is_strict_operator(self) -> bool:
        """True for arithmetic and comparisons that return NULL if an operand is NULL."""
        return self.operator.arithmetic or (self.is_comparison and self.nullable is Nullability.ANY_ARGUMENT)

    def evaluation_order(self, count: int) -> Sequence[int]:
        """Return the order in which Spark evaluates ``count`` arguments up to the first NULL; empty if it evaluates all."""
        order = self.evaluates or (range(count) if self.nullable is Nullability.ANY_ARGUMENT else ())
        return [position for position in order if position < count]

    def check_arity(self, count: int) -> None:
        """Raise PlanError unless ``count`` arguments are allowed."""
        low, high = self.arity
        if count < low or (high is not None and count > high):
            expected = str(low) if low == high else f"{low} or more" if high is None else f"{low} to {high}"
            raise PlanError(f"{self.name} takes {expected} argument(s), not {count}")


_FUNCTIONS: dict[str, Function] = {}
_NAMES: dict[str, str] = {}
_CATALYST: dict[str, str] = {}
_JAVA: dict[tuple[str, str], list[tuple[JavaMethod, str]]] = {}
_DATE_FIELDS: dict[str, str] = {}
_INTERVAL_FIELDS: dict[str, str] = {}
_UNIT_WORDS: dict[str, str] = {}
_OPERATORS: dict[tuple[str, int], str] = {}


def register(*entries: Function) -> None:
    """Add entries; names and Catalyst classes are unique."""
    for entry in entries:
        register_calls(entry.name, entry.aliases, entry.calls, entry.alias_calls)
        _NAMES.update(dict.fromkeys((entry.name, *entry.aliases), entry.name))
        _DATE_FIELDS.update(dict.fromkeys(entry.date_fields, entry.name))
        _INTERVAL_FIELDS.update(dict.fromkeys(entry.interval_fields, entry.name))
        _UNIT_WORDS.update(dict.fromkeys(entry.unit_words, entry.name))
        for symbol in filter(None, (entry.operator.symbol.upper(), *entry.operator.spellings)):
            _OPERATORS[symbol, 1 if entry.arity == (1, 1) else 2] = entry.name
        for cls in entry.catalyst:
            if cls in _CATALYST:
                raise ValueError(f"Catalyst class {cls} is registered twice")
            _CATALYST[cls] = entry.name
        for method in entry.java:
            _JAVA.setdefault((method.owner, method.method), []).append((method, entry.name))
        _FUNCTIONS[entry.name] = entry


def register_internal(*entries: Function) -> None:
    """Add entries that have no SQL function."""
    register(*(replace(entry, internal=True) for entry in entries))


def is_internal(name: str) -> bool:
    """True if ``name`` is an entry without a SQL function."""
    entry = _FUNCTIONS.get(name.lower())
    return entry is not None and entry.internal


def function(name: str) -> Function:
    """Return the entry for a name or alias. Raises PlanError if there is none."""
    key = _NAMES.get(name.lower())
    if key is None:
        raise PlanError(f"unknown function {name}")
    return _FUNCTIONS[key]


def has_function(name: str) -> bool:
    """True if a scalar function has this name or alias."""
    return name.lower() in _NAMES


def for_catalyst(cls: str) -> Function | None:
    """Return the entry for a Catalyst expression class, given by its simple name, or None."""
    name = _CATALYST.get(cls)
    return None if name is None else _FUNCTIONS[name]


def for_java_method(owner: str, method: str) -> Sequence[tuple[JavaMethod, Function]]:
    """Return the entries that a static Java method may represent."""
    return [(java, _FUNCTIONS[name]) for java, name in _JAVA.get((owner, method), ())]


def operator_function(symbol: str, operands: int) -> str | None:
    """Return the name of the function that implements an operator such as ``<>`` or ``DIV``, or None."""
    return _OPERATORS.get((symbol, operands))


def date_field_function(field: str) -> str | None:
    """Return the name of the function for ``EXTRACT(field FROM x)``, with the field in upper case, or None."""
    return _DATE_FIELDS.get(field)


def interval_field_function(field: str) -> str | None:
    """Return the name of the function for ``EXTRACT(field FROM x)`` of a day-time interval, or None."""
    return _INTERVAL_FIELDS.get(field)


def unit_function(word: str) -> str | None:
    """Return the name of the function for a word such as ``DATEADD``, if its first argument is a unit, or None."""
    return _UNIT_WORDS.get(word)


def functions() -> Mapping[str, Function]:
    """Return all entries by name."""
    return MappingProxyType(_FUNCTIONS)
