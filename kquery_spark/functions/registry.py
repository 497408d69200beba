"""The registry: a function is one entry with its names, type rule, NULL rule and kernel.

An entry is read by the SQL analyzer, the DataFrame API, the Catalyst importer, type derivation, the expression
compiler and the documentation, so adding a function is adding one entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from kquery_spark.errors import ExecutionError, PlanError, Unsupported
from kquery_spark.functions.call_form import ONE_COLUMN, CallForm, Spellings, register_calls
from kquery_spark.functions.invalid_utf8 import (
    InvalidUtf8,
    RowRule,
    call_with_malformed_strings,
    has_malformed_strings,
)
from kquery_spark.kernels.compiled import CompiledLoops
from kquery_spark.run_control import bounding_control
from kquery_spark.types.names import spark_name
from kquery_spark.types.sizes import reserve_gather, reserve_repeats
from kquery_spark.types.str_enum import StrEnum
from kquery_spark.types.vector import Data, Vector, decode, gather


class EvalMode(StrEnum):
    """What overflow, division by zero and bad casts do: raise, give NULL, or follow Java's arithmetic."""

    ANSI = "ansi"
    TRY = "try"
    LEGACY = "legacy"


@dataclass(frozen=True, slots=True)
class CallContext:
    """What a kernel may know besides its arguments."""

    dtype: pa.DataType
    mode: EvalMode = EvalMode.ANSI
    tz: str = "UTC"
    num_rows: int = 0


COLUMN: Final = object()
"""Stands for the value of an argument that is no literal."""

Kernel = Callable[[Sequence[Vector], CallContext], Data]
TypeRule = Callable[[Sequence[pa.DataType]], pa.DataType]
Coercion = Callable[[Sequence[pa.DataType]], Sequence[pa.DataType]]


@dataclass(frozen=True)
class Operator:
    """What SQL's operators are beyond functions. The names are those of other entries.

    symbol: what plans print between or before the operands. spellings: SQL's other spellings of it.
    arithmetic: computes a number from two. associative: constants of a chain of it can be gathered.
    connective: AND and OR, which can know their value from one side.
    flipped: the comparison with its sides swapped. equality: a comparison that is true for equal values only.
    opposite: the condition that is true where this one is false.
    """

    symbol: str = ""
    spellings: tuple[str, ...] = ()
    arithmetic: bool = False
    associative: bool = False
    connective: bool = False
    flipped: str = ""
    equality: bool = False
    opposite: str = ""


NO_OPERATOR = Operator()


@dataclass(frozen=True)
class CatalystParameters:
    """Fields of a Catalyst class that are no arguments.

    fixed: those with the only value for which the entry answers as Spark does. ignored: those that decide nothing, or
    that the importer reads. null_if_not_failing: failOnError = false gives NULL, not Java's wrapped-around number.
    builds_map: in LEGACY mode the last of equal keys wins, as ``spark.sql.mapKeyDedupPolicy`` says.
    """

    fixed: tuple[tuple[str, object], ...] = ()
    ignored: tuple[str, ...] = ()
    null_if_not_failing: bool = False
    builds_map: bool = False


NO_PARAMETERS = CatalystParameters()


@dataclass(frozen=True)
class JavaMethod:
    """A static Java method that represents a function in Spark's plans (``StaticInvoke``).

    owner: the simple name of the class. constants: positions and values of arguments that the function does not have; the
    method represents the function only with these values. mode: the evaluation mode of such a call.
    """

    owner: str
    method: str
    constants: tuple[tuple[int, object], ...] = ()
    mode: EvalMode = EvalMode.ANSI

    def own_arguments(self, literals: Sequence[object]) -> list[int] | None:
        """Return the positions of the function's arguments in a call; None if the call does not represent the function."""
        if any(i >= len(literals) or literals[i] != value for i, value in self.constants):
            return None
        dropped = {i for i, _ in self.constants}
        return [i for i in range(len(literals)) if i not in dropped]


@dataclass(frozen=True)
class VersionChange:
    """Calls whose result differs in earlier Spark releases; they fall back to Spark there.

    how: what those releases do, as the end of a sentence.
    concerns: takes argument types and literal values (COLUMN for other arguments) and returns True for affected calls.
    None: all calls are affected.
    since: the first release (major, minor) whose patch releases all answer as the engine does.
    patches: the first patch release of each earlier minor release that answers as the engine does.
    """

    how: str
    concerns: Callable[[Sequence[pa.DataType], Sequence[object]], bool] | None = None
    since: tuple[int, int] = (4, 3)
    patches: tuple[tuple[int, int, int], ...] = ()

    def is_before(self, release: tuple[int, int, int]) -> bool:
        """True if a release (major, minor, patch) answers differently from the engine."""
        fixed = any(patch[:2] == release[:2] and patch <= release for patch in self.patches)
        return release[:2] < self.since and not fixed

    @property
    def first(self) -> str:
        """The first releases that answer as the engine does, formatted for a sentence."""
        *patches, minor = (".".join(map(str, release)) for release in (*self.patches, self.since))
        return f"{', '.join(patches)} and {minor}" if patches else minor


@dataclass(frozen=True)
class Function:
    """One scalar function.

    Identity:
    name: Spark SQL's name in lower case. aliases: other SQL names. catalyst: simple names of the Catalyst classes.
    java: static Java methods that Spark calls instead. parameters: required values of fields of the Catalyst classes.
    internal: True if SQL has no function with this name, only an operator, syntax, or Spark's optimizer produces it.

    Types and NULLs:
    arity: minimum and maximum number of arguments (None: any number).
    result: computes the result type from the argument types, or raises PlanError. result_of: the same if the type also
    depends on literal arguments (the scale of ROUND); it replaces ``result``.
    coerce: the types that frontends cast the arguments to (Spark's implicit casts); identity by default.
    nullable: when the result is NULL:
      "any": exactly if some argument is NULL        "all": only if all arguments are NULL
      "always": also for other reasons               "never": never
      "first", "two", "rest": as for "any", but only the first, the first two, or all but the first argument count
      "field": if the struct or its field is NULL    "elements": as "any", or if an element of the array is NULL
    takes_variants: True if an argument may be a variant. zones: positions of the arguments that name time zones.

    Evaluation:
    kernel: maps vectors to a pa.Array or pa.Scalar in a physical form of the result type.
    encoded: True if the kernel handles narrow decimals and dictionaries itself; otherwise it receives plain data.
    check_values: raises Unsupported for literal arguments that the kernel does not support (COLUMN stands for others).
    raises: the modes in which a row can raise an error. The call must not see rows that a branch or AND excludes.
    safe_for: takes argument types and literal values (COLUMN for others); True if no row can raise an error after all.
    evaluates: argument positions in the order in which Spark evaluates them until one is NULL. Empty: from left to right if
    nullable is "any", otherwise all arguments. zero_ends: outside of ANSI mode, a zero also ends the evaluation.
    lazy: True if Spark evaluates the arguments after the first only if it needs them.
    loops: compiled loops that the function needs to be fast; it falls back to Spark until they are compiled.
    invalid_utf8: the treatment of strings that are not valid UTF-8, or a function that computes such rows one by one.
    changes: calls that earlier Spark releases answer differently.

    Planning:
    deterministic: False if each call may return another value.
    foldable: True if a call with constant arguments is a constant.
    selectivity: expected share of rows that pass it as a condition, if that is unusual.
    distinct_values: number of different results, including NULL, if there are few.

    SQL and DataFrames:
    calls: how calls are written in DataFrames and shown in column names. alias_calls: aliases that differ from that.
    operator: the SQL operator that it implements.
    date_fields, interval_fields: fields for which ``EXTRACT(field FROM x)`` is this function, for dates and timestamps, and
    for day-time intervals.
    unit_words: words that are this function if a unit comes first: ``DATEADD(DAY, 1, x)``.
    reads_field: True if it reads a field of a struct, or of every struct in an array. Spark names the column after the
    field.
    """

    name: str
    kernel: Kernel
    result: TypeRule
    catalyst: tuple[str, ...] = ()
    arity: tuple[int, int | None] = (1, 1)
    nullable: str = "any"
    raises: frozenset[EvalMode] = frozenset()
    safe_for: Callable[[Sequence[pa.DataType], Sequence[object]], bool] | None = None
    encoded: bool = False
    coerce: Coercion | None = None
    aliases: tuple[str, ...] = ()
    deterministic: bool = True
    foldable: bool = True
    check_values: Callable[[Sequence[object]], None] | None = None
    result_of: Callable[[Sequence[pa.DataType], Sequence[object]], pa.DataType] | None = None
    evaluates: tuple[int, ...] = ()
    zero_ends: bool = False
    internal: bool = False
    calls: CallForm = ONE_COLUMN
    alias_calls: Spellings = ()
    operator: Operator = NO_OPERATOR
    lazy: bool = False
    selectivity: float | None = None
    distinct_values: float | None = None
    date_fields: tuple[str, ...] = ()
    interval_fields: tuple[str, ...] = ()
    unit_words: tuple[str, ...] = ()
    reads_field: bool = False
    takes_variants: bool = False
    zones: tuple[int, ...] = ()
    loops: CompiledLoops | None = None
    java: tuple[JavaMethod, ...] = ()
    parameters: CatalystParameters = NO_PARAMETERS
    changes: tuple[VersionChange, ...] = ()
    invalid_utf8: InvalidUtf8 | RowRule = InvalidUtf8.DECLINED

    @property
    def is_comparison(self) -> bool:
        """True if the function compares two values."""
        return bool(self.operator.flipped)

    @property
    def is_strict_operator(self) -> bool:
        """True for arithmetic and comparisons that return NULL if an operand is NULL."""
        return self.operator.arithmetic or (self.is_comparison and self.nullable == "any")

    def evaluation_order(self, count: int) -> Sequence[int]:
        """Return the order in which Spark evaluates ``count`` arguments up to the first NULL; empty if it evaluates all."""
        order = self.evaluates or (range(count) if self.nullable == "any" else ())
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
        raise PlanError(f"there is no function {name}")
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


def call(entry: Function, args: Sequence[Vector], context: CallContext) -> Vector:
    """Run a function over vectors, choosing the cheapest correct way.

    All-literal calls run on one row. A dictionary column as the only column of a NULL-propagating function runs
    on the dictionary's values; should a value raise or be declined that no row refers to, it runs again on the rows.
    """
    if args and all(a.is_scalar for a in args):
        # one argument becomes a column of one row, so that a kernel always has a column and finds its options as scalars
        rows = [Vector(args[0].dtype, _one(args[0])), *(Vector(a.dtype, a.plain()) for a in args[1:])]
        data = _kernel(entry, rows, CallContext(context.dtype, context.mode, context.tz, 1))
        return Vector(context.dtype, data if isinstance(data, pa.Scalar) else data[0])
    if not entry.encoded and entry.nullable == "any":
        lifted = _lift(entry, args, context)
        if lifted is not None:
            return Vector(context.dtype, lifted)
    return Vector(context.dtype, _kernel(entry, args, context))


def _one(vector: Vector) -> pa.Array:
    return pa.repeat(vector.plain(), 1) if vector.data.is_valid else pa.nulls(1, vector.dtype)


def _kernel(entry: Function, args: Sequence[Vector], context: CallContext) -> Data:
    if not entry.encoded:
        args = [Vector(a.dtype, a.plain()) for a in args]
    if has_malformed_strings(entry.invalid_utf8, args):
        rule, dtype = entry.invalid_utf8, context.dtype
        return call_with_malformed_strings(
            entry.name, rule, lambda valid: _bounded(entry, valid, context), args, dtype, context.num_rows
        )
    return _bounded(entry, args, context)


def _bounded(entry: Function, args: Sequence[Vector], context: CallContext) -> Data:
    """Run the kernel within the limits of the run."""
    control = bounding_control()
    if control is None:
        return entry.kernel(args, context)
    if not _is_fixed_width(context.dtype):
        reserve_repeats([a.data for a in args], context.num_rows)
    data = entry.kernel(args, context)
    if isinstance(data, pa.Array):
        control.reserve(data.nbytes)  # what calls around this one make more of
    return data


def _is_fixed_width(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(dtype) or pa.types.is_decimal(dtype) or pa.types.is_null(dtype))


def _lift(entry: Function, args: Sequence[Vector], context: CallContext) -> Data | None:
    columns = [i for i, a in enumerate(args) if not a.is_scalar]
    if len(columns) != 1 or not args[columns[0]].is_dictionary:
        return None
    column = args[columns[0]].data
    if len(column.dictionary) > len(column) or column.dictionary.null_count:
        return None
    lifted = list(args)
    lifted[columns[0]] = Vector(args[columns[0]].dtype, column.dictionary)
    inner = CallContext(context.dtype, context.mode, context.tz, len(column.dictionary))
    try:
        data = _kernel(entry, lifted, inner)
    except (ExecutionError, Unsupported):
        return None
    if isinstance(data, pa.Scalar):
        return None
    if pa.types.is_dictionary(data.type):
        data = decode(data)
    if pa.types.is_string(data.type):
        if data.null_count:
            reserve_gather([data], column.indices)
        return (
            pa.DictionaryArray.from_arrays(column.indices, data)
            if not data.null_count
            else data.take(column.indices)
        )
    return gather(data, column.indices)


# --- type rules that many entries share -----------------------------------------------------------


class ArgumentTypeError(PlanError):
    """A type that a function does not accept for an argument; the caller adds the function's name."""


def fixed(dtype: pa.DataType) -> TypeRule:
    """Always ``dtype``."""
    return lambda types: dtype


def same(types: Sequence[pa.DataType]) -> pa.DataType:
    """The first argument's type."""
    return types[0]


def depends_on_values(types: Sequence[pa.DataType]) -> pa.DataType:
    """The ``result`` of functions whose type only ``result_of`` can tell."""
    raise PlanError("the type depends on the arguments' values")


def given_schema(types: Sequence[pa.DataType]) -> pa.DataType:
    """The ``result`` of functions whose type is a schema that the caller gives."""
    raise PlanError("the type is that of a schema")


def accept(result: pa.DataType | TypeRule, *allowed: Callable[[pa.DataType], bool] | pa.DataType) -> TypeRule:
    """``result``, after checking each argument (the last test repeats) against a type or a predicate."""

    def rule(types: Sequence[pa.DataType]) -> pa.DataType:
        for i, dtype in enumerate(types):
            test = allowed[min(i, len(allowed) - 1)]
            if not (dtype == test if isinstance(test, pa.DataType) else test(dtype)):
                raise ArgumentTypeError(f"argument {i + 1} cannot be {spark_name(dtype)}")
        return result if isinstance(result, pa.DataType) else result(types)

    return rule


def cast_to(*targets: pa.DataType) -> Coercion:
    """Frontends cast each argument to the target at its position (the last repeats)."""
    return lambda types: [targets[min(i, len(targets) - 1)] for i in range(len(types))]


ANSI_RAISES = frozenset({EvalMode.ANSI})
ALWAYS_RAISES = frozenset(EvalMode)
