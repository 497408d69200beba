"""The expression nodes.

Every node knows its Spark type and whether it can be NULL, so a plan can be read, printed and rewritten without a
schema at hand. Columns are named; a plan node's output names are unique, so a name says which column is meant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
from typing_extensions import override

from kquery_spark.expr.literal_text import format_literal
from kquery_spark.functions import casts
from kquery_spark.functions.registry import COLUMN, EvalMode, Function, Nullability, function
from kquery_spark.functions.sql_form import Logic
from kquery_spark.types import names as t


@dataclass(frozen=True)
class Expr:
    """Base of all expressions."""

    @property
    def dtype(self) -> pa.DataType:
        """Spark type of the value, as an Arrow type."""
        raise NotImplementedError

    @property
    def nullable(self) -> bool:
        """Whether the value can be NULL."""
        raise NotImplementedError

    @property
    def default_alias(self) -> str | None:
        """The automatic name of the column with this expression; None without a simple one."""
        return None

    @property
    def children(self) -> tuple[Expr, ...]:
        """Direct sub-expressions."""
        return ()

    def with_children(self, children: Sequence[Expr]) -> Expr:
        """The same node over other children."""
        if children:
            raise ValueError(f"{type(self).__name__} has no children")
        return self


@dataclass(frozen=True)
class Column(Expr):
    """A reference to an input column by name."""

    name: str
    type: pa.DataType
    null: bool = True

    @property
    @override
    def dtype(self) -> pa.DataType:
        return self.type

    @property
    @override
    def nullable(self) -> bool:
        return self.null

    @property
    @override
    def default_alias(self) -> str | None:
        return self.name

    def __str__(self) -> str:
        return f"#{self.name}"


@dataclass(frozen=True)
class Literal(Expr):
    """One value: None, bool, int, float, str, bytes or Decimal.

    Dates are days, timestamps and day-time intervals microseconds, year-month intervals months, times of day nanoseconds,
    all as int, so that a literal never depends on a time zone or a Python calendar's range.
    """

    value: Any
    type: pa.DataType

    def __eq__(self, other: object) -> bool:
        return other.__class__ is Literal and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Any, pa.DataType]:
        """Return what ``==`` compares: floats as hexadecimal strings, so 0.0 differs from -0.0, and NaN equals NaN."""
        value = self.value
        return value.hex() if value.__class__ is float else value, self.type

    @property
    @override
    def dtype(self) -> pa.DataType:
        return self.type

    @property
    @override
    def nullable(self) -> bool:
        return self.value is None

    def __str__(self) -> str:
        return format_literal(self.value, self.type)


def _literals(args: Sequence[Expr]) -> list[object]:
    return [a.value if isinstance(a, Literal) else COLUMN for a in args]


@dataclass(frozen=True)
class Call(Expr):
    """A registered scalar function applied to arguments; build it with ``Call.of``."""

    function: str
    args: tuple[Expr, ...]
    type: pa.DataType
    mode: EvalMode = EvalMode.ANSI
    tz: str = "UTC"

    @classmethod
    def of(
        cls,
        name: str,
        *args: Expr,
        mode: EvalMode = EvalMode.ANSI,
        tz: str = "UTC",
        dtype: pa.DataType | None = None,
    ) -> Call:
        """Build a call whose type the registry derives; raises PlanError for a wrong arity or type, or Unsupported."""
        entry = function(name)
        entry.check_arity(len(args))
        values = _literals(args)
        if entry.check_values is not None:
            entry.check_values(values)
        types = [a.dtype for a in args]
        if dtype is None:
            dtype = entry.result(types) if entry.result_of is None else entry.result_of(types, values)
        return cls(entry.name, args, dtype, mode, tz)

    @property
    def literals(self) -> list[object]:
        """Each argument's value where it is a literal, else COLUMN."""
        return _literals(self.args)

    @property
    def entry(self) -> Function:
        """The registry entry."""
        return function(self.function)

    @property
    def logic(self) -> Logic | None:
        """The meaning of the function if it is a logical operator."""
        return self.entry.operator.logic

    @property
    @override
    def dtype(self) -> pa.DataType:
        return self.type

    @property
    @override
    def nullable(self) -> bool:
        rule = _NULLABLE.get(self.entry.nullable)
        if rule is not None:
            return rule(self)
        # A loop, not any(...), so that each level of nested calls takes only one frame of Python's stack.
        for arg in self.args:
            if arg.nullable:
                return True
        return self.mode is not EvalMode.ANSI and bool(self.entry.raises)

    @property
    @override
    def children(self) -> tuple[Expr, ...]:
        return self.args

    @override
    def with_children(self, children: Sequence[Expr]) -> Expr:
        return replace(self, args=tuple(children))

    def __str__(self) -> str:
        symbol = self.entry.operator.symbol
        if symbol and len(self.args) == 2:
            return f"{_wrapped(self.args[0])} {symbol} {_wrapped(self.args[1])}"
        if symbol == "NOT":
            return f"NOT {_wrapped(self.args[0])}"
        if symbol:
            return f"{symbol}{_wrapped(self.args[0])}"
        if self.logic is Logic.IS_NULL:
            return f"{_wrapped(self.args[0])} IS NULL"
        if self.logic is Logic.IS_NOT_NULL:
            return f"{_wrapped(self.args[0])} IS NOT NULL"
        return f"{self.function}({', '.join(map(str, self.args))})"


def _wrapped(expr: Expr) -> str:
    """The string of an operand, in parentheses wherever it is itself an operator."""
    bare = isinstance(expr, Column | Literal | Cast | Case) or (
        isinstance(expr, Call) and not expr.entry.operator.symbol
    )
    return str(expr) if bare else f"({expr})"


def _any_nullable(args: Sequence[Expr]) -> bool:
    return any(a.nullable for a in args)


def _has_nullable_field(call: Call) -> bool:
    record, name = call.args[0], call.literals[1]
    return record.nullable or record.dtype.field(name).nullable


#: For the ``nullable`` of a function, returns whether a call can be NULL. ``Call.nullable`` itself handles
#: ANY_ARGUMENT and SOME_ARGUMENT: such a call can be NULL if an argument is nullable, or if the mode turns
#: errors into NULL.
_NULLABLE: Final[Mapping[Nullability, Callable[[Call], bool]]] = {
    Nullability.NEVER: lambda call: False,
    Nullability.OTHER_REASONS: lambda call: True,
    Nullability.ALL_ARGUMENTS: lambda call: all(a.nullable for a in call.args),
    Nullability.FIRST_ARGUMENT: lambda call: _any_nullable(call.args[:1]),
    Nullability.FIRST_TWO_ARGUMENTS: lambda call: _any_nullable(call.args[:2]),
    Nullability.ALL_BUT_FIRST: lambda call: _any_nullable(call.args[1:]),
    Nullability.STRUCT_OR_FIELD: _has_nullable_field,
    Nullability.ARGUMENT_OR_ELEMENT: lambda call: (
        _any_nullable(call.args) or call.args[0].dtype.value_field.nullable
    ),
}


@dataclass(frozen=True)
class Cast(Expr):
    """A conversion to another type. ``mode``: whether a value that does not fit raises, is NULL, or wraps around."""

    child: Expr
    to: pa.DataType
    mode: EvalMode = EvalMode.ANSI
    tz: str = "UTC"

    @property
    @override
    def dtype(self) -> pa.DataType:
        return self.to

    @property
    @override
    def nullable(self) -> bool:
        return self.child.nullable or casts.can_be_null(self.child.dtype, self.to, self.mode)

    @property
    @override
    def children(self) -> tuple[Expr, ...]:
        return (self.child,)

    @override
    def with_children(self, children: Sequence[Expr]) -> Expr:
        return replace(self, child=children[0])

    def __str__(self) -> str:
        name = "TRY_CAST" if self.mode is EvalMode.TRY else "CAST"
        return f"{name}({self.child} AS {t.spark_name(self.to)})"


@dataclass(frozen=True)
class Case(Expr):
    """CASE WHEN: conditions and values in turn, then an optional ELSE; IF and the simple form become this."""

    branches: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None = None

    @property
    @override
    def dtype(self) -> pa.DataType:
        return self.branches[0][1].dtype

    @property
    @override
    def nullable(self) -> bool:
        for condition, value in self.branches:
            if value.nullable or condition == Literal(True, t.BOOL):
                return value.nullable  # what comes after TRUE does not count, as in Spark
        return self.otherwise is None or self.otherwise.nullable

    @property
    @override
    def children(self) -> tuple[Expr, ...]:
        flat = tuple(e for pair in self.branches for e in pair)
        return flat if self.otherwise is None else (*flat, self.otherwise)

    @override
    def with_children(self, children: Sequence[Expr]) -> Expr:
        count = 2 * len(self.branches)
        pairs = tuple((children[i], children[i + 1]) for i in range(0, count, 2))
        return Case(pairs, children[count] if len(children) > count else None)

    def __str__(self) -> str:
        whens = " ".join(f"WHEN {c} THEN {v}" for c, v in self.branches)
        other = "" if self.otherwise is None else f" ELSE {self.otherwise}"
        return f"CASE {whens}{other} END"


@dataclass(frozen=True)
class InList(Expr):
    """``child IN (literals)``; the literals have the child's type."""

    child: Expr
    values: tuple[Literal, ...]

    @property
    @override
    def dtype(self) -> pa.DataType:
        return t.BOOL

    @property
    @override
    def nullable(self) -> bool:
        return self.child.nullable or any(v.value is None for v in self.values)

    @property
    @override
    def children(self) -> tuple[Expr, ...]:
        return (self.child,)

    @override
    def with_children(self, children: Sequence[Expr]) -> Expr:
        return replace(self, child=children[0])

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.values[:20])) + (
            f", ... {len(self.values)}" if len(self.values) > 20 else ""
        )
        return f"{_wrapped(self.child)} IN ({shown})"


@dataclass(frozen=True)
class Named:
    """An expression and the name of the column it becomes."""

    expr: Expr
    name: str

    def __str__(self) -> str:
        plain = self.expr.default_alias == self.name
        return str(self.expr) if plain else f"{self.expr} AS {self.name}"

    @property
    def column(self) -> Column:
        """A reference to the column this makes."""
        return Column(self.name, self.expr.dtype, self.expr.nullable)

    @property
    def field(self) -> pa.Field:
        """The field this makes."""
        return pa.field(self.name, self.expr.dtype, self.expr.nullable)


@dataclass(frozen=True)
class SortKey:
    """One ORDER BY key; Spark's default is NULLs first ascending, last descending."""

    expr: Expr
    ascending: bool = True
    nulls_first: bool = True

    def __str__(self) -> str:
        text = f"{self.expr} {'ASC' if self.ascending else 'DESC'}"
        if self.nulls_first != self.ascending:
            text += " NULLS FIRST" if self.nulls_first else " NULLS LAST"
        return text
