"""The parity harness: one function call evaluated by Spark and by our Program over the same generated arguments.

A ``Case`` names a registry entry, Spark's text for the call and the values of each argument; ``check`` runs it in the
engine, in every form its arguments can have, and compares with the answer that the ``Oracle`` got from Spark.
"""

from __future__ import annotations

import itertools
import math
import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import kquery_spark.functions  # noqa: F401  fills the registry
from kquery_spark.errors import ExecutionError
from kquery_spark.expr import Call, Cast, Column, Expr, Literal
from kquery_spark.functions.registry import EvalMode
from kquery_spark.physical.expr.program import Program
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch
from kquery_spark.types.vector import Vector, from_arrow
from tests.conftest import SPARK_BEFORE_4_3

if TYPE_CHECKING:
    from tests.functions.oracle import Answer

MAX_ROWS = 120
Build = Callable[[list[Expr], EvalMode, str], Expr]


@dataclass(frozen=True)
class Arg:
    """A column argument and the values it takes (NULL is added); ``sql`` wraps the stored column."""

    dtype: pa.DataType
    values: tuple[Any, ...]
    nulls: bool = True


@dataclass(frozen=True)
class Lit:
    """An argument that is always this literal, in both engines."""

    value: Any
    dtype: pa.DataType
    sql: str

    @property
    def expr(self) -> Literal:
        return Literal(self.value, self.dtype)


def text(value: str) -> Lit:
    """A string literal."""
    quoted = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return Lit(value, t.STRING, f"'{quoted}'")


def integer(value: int) -> Lit:
    """An int literal."""
    return Lit(value, t.INT, f"cast({value} as int)")


@dataclass(frozen=True)
class Case:
    """One call: ``function`` of the registry (or ``cast``), Spark's text with ``{0}`` .. for the arguments."""

    function: str
    sql: str
    args: tuple[Arg | Lit, ...]
    build: Build | None = None
    ansi: bool = True
    tz: str = "UTC"
    ulps: int = 0
    mode: EvalMode | None = None
    check_nullable: bool = True
    relative: float = 0.0
    id: str = ""

    @property
    def eval_mode(self) -> EvalMode:
        return self.mode or (EvalMode.ANSI if self.ansi else EvalMode.LEGACY)

    @property
    def columns(self) -> list[Arg]:
        return [a for a in self.args if isinstance(a, Arg)]

    def expr(self, columns: Sequence[Expr]) -> Expr:
        """Our expression over the given column expressions, literals put in their places."""
        rest = iter(columns)
        args = [a.expr if isinstance(a, Lit) else next(rest) for a in self.args]
        if self.build is not None:
            return self.build(args, self.eval_mode, self.tz)
        return Call.of(self.function, *args, mode=self.eval_mode, tz=self.tz)

    def text(self, columns: Sequence[str]) -> str:
        rest = iter(columns)
        return self.sql.format(*[a.sql if isinstance(a, Lit) else next(rest) for a in self.args])

    @property
    def name(self) -> str:
        flavour = ("" if self.ansi else " legacy") + ("" if self.tz == "UTC" else f" {self.tz}")
        types = ",".join(t.spark_name(a.dtype) for a in self.columns)
        shown = self.sql.format(*[a.sql if isinstance(a, Lit) else "#" for a in self.args])
        return f"{self.function}: {shown} over ({types}){flavour}"


def cast_case(source: Arg, target: pa.DataType, **options: Any) -> Case:
    """``CAST(column AS target)`` (TRY_CAST with ``mode=TRY``)."""
    word = "try_cast" if options.get("mode") is EvalMode.TRY else "cast"

    def build(args: list[Expr], mode: EvalMode, tz: str) -> Expr:
        to = t.timestamp(tz) if t.is_timestamp(target) else target
        return Cast(args[0], to, mode, tz)

    return Case("cast", f"{word}({{0}} as {t.spark_name(target)})", (source,), build, **options)


def rows_of(case: Case) -> list[tuple[Any, ...]]:
    """Argument rows: the whole product where it is small, else a sample that covers every value, and NULL in all columns."""
    lists = [[*a.values, None] if a.nulls else list(a.values) for a in case.columns]
    if not lists:
        return [()]
    if math.prod(map(len, lists)) <= MAX_ROWS or len(lists) == 1:
        return list(itertools.product(*lists))
    rng = random.Random(7)
    longest = max(map(len, lists))
    rows = [tuple(values[i % len(values)] for values in lists) for i in range(longest)]
    rows += [tuple(values[-1] for values in lists)]
    rows += [tuple(rng.choice(values) for values in lists) for _ in range(max(0, MAX_ROWS - longest - 1))]
    return rows


def storage_type(dtype: pa.DataType) -> pa.DataType:
    """The type a column has in the Parquet file."""
    if t.is_interval(dtype):
        return t.INTERVAL_STORAGE[dtype]
    if dtype == t.TIME:
        return pa.time64("us")
    return pa.timestamp("us", "UTC") if t.is_timestamp(dtype) else dtype


def column_array(dtype: pa.DataType, values: Sequence[Any]) -> pa.Array:
    """Values as Arrow; dates, timestamps, intervals and times are given as integers, times as nanoseconds."""
    if dtype == t.DATE:
        return pa.array(values, pa.int32()).cast(t.DATE)
    if pa.types.is_timestamp(dtype) or t.is_interval(dtype):
        return pa.array(values, pa.int64()).cast(dtype)
    if pa.types.is_time64(dtype):
        return pa.array(values, pa.int64()).cast(t.TIME).cast(dtype)
    return pa.array(values, dtype)


def engine_type(dtype: pa.DataType, tz: str) -> pa.DataType:
    return t.timestamp(tz) if t.is_timestamp(dtype) else dtype


# --- our side -------------------------------------------------------------------------------------------------


def run(case: Case, columns: Sequence[Expr], arrays: Sequence[pa.Array], num_rows: int) -> pa.Array:
    """Our answer over physical columns, as plain Arrow of the expression's type."""
    expr = case.expr(columns)
    schema = pa.schema([pa.field(c.name, c.dtype) for c in columns if isinstance(c, Column)])
    batch = Batch(schema, tuple(arrays), num_rows)
    (vector,) = Program([expr], schema).run(batch)
    return plain(vector, num_rows)


def plain(vector: Vector, num_rows: int) -> pa.Array:
    array = vector.array(num_rows)
    array.validate(full=True)
    assert len(array) == num_rows, f"{len(array)} rows instead of {num_rows}"
    assert array.type == vector.dtype, f"physical {array.type} for {vector.dtype}"
    return array


def bits(value: Any, dtype: pa.DataType) -> Any:
    """A value that compares exactly: floats by their bits (one NaN), nested ones recursively."""
    if value is None:
        return None
    if pa.types.is_floating(dtype):
        if value != value:
            return "NaN"
        return struct.pack(">f" if dtype == t.FLOAT else ">d", value)
    return value


def values_of(array: pa.Array) -> list[Any]:
    """Exact Python values; dates and times as integers."""
    dtype = array.type
    if dtype == t.DATE:
        return list(array.cast(pa.int32()).to_pylist())
    if pa.types.is_timestamp(dtype) or pa.types.is_duration(dtype) or dtype == t.TIME:
        return list(array.cast(pa.int64()).to_pylist())
    if pa.types.is_floating(dtype):
        return [bits(v, dtype) for v in array.to_pylist()]
    if pa.types.is_struct(dtype):
        parts = [
            values_of(array.field(i) if array.null_count == 0 else pc.struct_field(array, [i]))
            for i in range(dtype.num_fields)
        ]
        valid = array.is_valid().to_pylist()
        return [tuple(p[k] for p in parts) if ok else None for k, ok in enumerate(valid)]
    if pa.types.is_map(dtype):
        entries = list(zip(values_of(array.keys), values_of(array.items), strict=True))
        bounds = array.offsets.to_pylist()
        spans = itertools.pairwise(bounds)
        valid = array.is_valid().to_pylist()
        return [tuple(entries[a:b]) if ok else None for (a, b), ok in zip(spans, valid, strict=True)]
    if pa.types.is_list(dtype):
        flat = values_of(array.flatten())
        result: list[Any] = []
        at = 0
        for item in array:
            if not item.is_valid:
                result.append(None)
                continue
            size = len(item)
            result.append(tuple(flat[at : at + size]))
            at += size
        return result
    return list(array.to_pylist())


def close(ours: Any, spark: Any, dtype: pa.DataType, ulps: int, relative: float) -> bool:
    """Whether two ``values_of`` items agree."""
    if ours == spark:
        return True
    if (not ulps and not relative) or ours is None or spark is None or "NaN" in (ours, spark):
        return False
    code = ">f" if dtype == t.FLOAT else ">d"
    a, b = struct.unpack(code, ours)[0], struct.unpack(code, spark)[0]
    if math.isinf(a) or math.isinf(b) or math.copysign(1, a) != math.copysign(1, b):
        return False
    if relative and abs(a - b) <= relative * max(abs(a), abs(b)):
        return True
    return abs(int.from_bytes(ours, "big") - int.from_bytes(spark, "big")) <= ulps


def same_types(ours: pa.DataType, spark: pa.DataType) -> bool:
    return t.spark_name(ours) == t.spark_name(spark)


def check(case: Case, answer: Answer) -> list[str]:
    """Every disagreement between Spark's answer and ours, in words."""
    if answer.failure is not None:
        return [f"Spark cannot analyze it: {answer.failure}"]
    rows = rows_of(case)
    columns = [Column(f"a{j}", engine_type(a.dtype, case.tz)) for j, a in enumerate(case.columns)]
    expr = case.expr(columns)
    problems = []
    if not same_types(expr.dtype, answer.dtype):
        return [f"type {t.spark_name(expr.dtype)}, Spark {t.spark_name(answer.dtype)}"]
    if case.check_nullable:
        loose = case.eval_mode is not EvalMode.ANSI  # there our answer may be the wider one

        def differs(ours: bool, spark: bool | None) -> bool:
            return ours != spark and not (loose and ours)

        if differs(expr.nullable, answer.nullable):
            problems.append(f"nullable {expr.nullable}, Spark {answer.nullable}")
        strict = [replace(c, null=False) for c in columns]
        nested = any(t.is_nested(a.dtype) or t.is_interval(a.dtype) for a in case.columns)
        if columns and not nested and differs(case.expr(strict).nullable, answer.nullable_tight):
            problems.append(
                f"nullable over non-null input {case.expr(strict).nullable}, Spark {answer.nullable_tight}"
            )
    spark = values_of(answer.values)
    good = [k for k in range(len(rows)) if answer.errors[k] is None]
    bad = [k for k in range(len(rows)) if answer.errors[k] is not None]

    def compare(label: str, places: Sequence[int], ours: pa.Array) -> None:
        for place, value in zip(places, values_of(ours), strict=True):
            if not close(value, spark[place], answer.dtype, case.ulps, case.relative) and len(problems) < 12:
                problems.append(
                    f"{label} {rows[place]!r}: {show(value, answer.dtype)}, Spark {show(spark[place], answer.dtype)}"
                )

    for label, arrays in forms(case, [rows[k] for k in good]):
        try:
            compare(label, good, run(case, columns, arrays, len(good)))
        except ExecutionError as error:
            problems.append(
                f"{label} raised {error}; " + str(_first_raising(case, columns, [rows[k] for k in good]))
            )
    nested = any(t.is_nested(a.dtype) for a in case.columns)  # there are no literals of nested types
    for k in [] if nested else good if len(good) < 24 else good[:: max(1, len(good) // 12)]:
        literals = [literal(a, v, case.tz) for a, v in zip(case.columns, rows[k], strict=True)]
        try:
            compare("literals", [k], run(case, literals, [], 1))
        except ExecutionError as error:
            problems.append(f"literals {rows[k]!r} raised {error}")
    if len(columns) > 1:
        problems += _mixed(case, columns, rows, good, compare)
    for k in bad[:: max(1, len(bad) // 40)]:
        arrays = [physical(a, [v], case.tz) for a, v in zip(case.columns, rows[k], strict=True)]
        try:
            value = run(case, columns, arrays, 1)
            problems.append(f"{rows[k]!r}: {value.to_pylist()}, Spark raises {answer.errors[k]}")
        except ExecutionError as error:
            undeclared = str(answer.errors[k]) in (
                "ArithmeticException",
                "java.lang.ArithmeticException",
            )  # Spark lets Java's own exception through
            # an older Spark is asked again, and raises its own error
            if error.error_class != answer.errors[k] and not undeclared and not SPARK_BEFORE_4_3:
                problems.append(f"{rows[k]!r} raises {error.error_class}, Spark {answer.errors[k]}")
    return problems


def _first_raising(case: Case, columns: Sequence[Column], rows: list[tuple[Any, ...]]) -> Any:
    for row in rows:
        try:
            run(case, columns, [physical(a, [v], case.tz) for a, v in zip(case.columns, row, strict=True)], 1)
        except ExecutionError:
            return row
    return None


def _mixed(case: Case, columns: Sequence[Column], rows: Any, good: list[int], compare: Any) -> list[str]:
    """One argument a column, the others literals, for a few values of the others."""
    problems = []
    for position in range(len(columns)):
        groups: dict[Any, list[int]] = {}
        for k in good:
            groups.setdefault(repr(rows[k][:position] + rows[k][position + 1 :]), []).append(k)
        if any(t.is_nested(a.dtype) for j, a in enumerate(case.columns) if j != position):
            continue
        largest = sorted(groups.values(), key=len, reverse=True)[:6]
        for members in largest:
            exprs: list[Expr] = [
                columns[j] if j == position else literal(a, rows[members[0]][j], case.tz)
                for j, a in enumerate(case.columns)
            ]
            array = physical(case.columns[position], [rows[k][position] for k in members], case.tz)
            try:
                compare(f"column {position} of", members, run(case, exprs, [array], len(members)))
            except ExecutionError as error:
                problems.append(f"column {position} with {rows[members[0]]!r} raised {error}")
    return problems


def show(value: Any, dtype: pa.DataType) -> Any:
    if isinstance(value, bytes) and pa.types.is_floating(dtype):
        return struct.unpack(">f" if dtype == t.FLOAT else ">d", value)[0]
    return repr(value)


def literal(arg: Arg, value: Any, tz: str) -> Literal:
    if isinstance(value, np.generic):
        value = value.item()
    if arg.dtype == t.FLOAT and value is not None:
        value = float(np.float32(value))
    return Literal(value, engine_type(arg.dtype, tz))


def physical(arg: Arg, values: Sequence[Any], tz: str) -> pa.Array:
    """The engine's usual form of a column (narrow decimals)."""
    dtype = engine_type(arg.dtype, tz)
    return from_arrow(dtype, column_array(dtype, values)).data


def forms(case: Case, rows: Sequence[tuple[Any, ...]]) -> list[tuple[str, list[pa.Array]]]:
    """The same rows in each physical form columns may have, none of them at offset 0."""
    lists = [[r[j] for r in rows] for j in range(len(case.columns))]
    usual = [_shifted(physical(a, v, case.tz)) for a, v in zip(case.columns, lists, strict=True)]
    found = [("", usual)]
    if any(t.is_decimal(a.dtype) for a in case.columns):
        wide = [
            _shifted(column_array(a.dtype, v)) if t.is_decimal(a.dtype) else u
            for a, v, u in zip(case.columns, lists, usual, strict=True)
        ]
        found.append(("wide", wide))
    strings = [j for j, a in enumerate(case.columns) if a.dtype == t.STRING]
    if strings:
        for chosen in ([strings[0]], strings) if len(strings) > 1 else (strings,):
            encoded = [dictionary(u) if j in chosen else u for j, u in enumerate(usual)]
            found.append((f"dictionary {chosen}", encoded))
    return found


def _shifted(array: pa.Array) -> pa.Array:
    return pa.concat_arrays([array[:3], array])[min(3, len(array)) :]


def dictionary(array: pa.Array) -> pa.Array:
    """A dictionary column of few values; no row refers to one of them."""
    plain = pa.concat_arrays([pa.array(["\x00 unused"], t.STRING), array])
    return plain.dictionary_encode()[1:]
