"""Spark's answers to parity cases: one Parquet file holds every argument column, one SELECT a chunk of calls.

Rows on which Spark raises are found beforehand by evaluating Spark's own bound expression on single rows in the
driver's JVM.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kquery_spark.expr import Column
from kquery_spark.expr.properties import can_raise
from kquery_spark.spark_bridge.frames.crossing_types import comparable_table, converted_columns
from kquery_spark.spark_bridge.frames.pyspark_names import spark_schema_of
from kquery_spark.spark_bridge.plan.row_errors import unconverted_errors
from kquery_spark.types import names as t
from tests.conftest import SPARK_VERSION, settings, uncompiled
from tests.functions.parity import Arg, Case, column_array, engine_type, rows_of, storage_type

#: Spark 4's defaults, not 3.5's.
DEFAULTS_OF_4 = {
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
}
#: Times are not on by default in all releases that have them.
TIMES = {"spark.sql.timeType.enabled": "true"} if SPARK_VERSION >= (4, 1) else {}
Reference = Callable[[int, int, Arg], str]


@dataclass
class Answer:
    """What Spark says: type and nullability, a value per row (arrow) and an error class per raising row."""

    values: pa.Array
    errors: list[str | None]
    dtype: pa.DataType
    nullable: bool
    nullable_tight: bool | None = None
    failure: str | None = None


@dataclass
class Oracle:
    """Spark's answers to cases, asked for in chunks that share session settings."""

    spark: Any
    directory: Path
    chunk: int = 120
    answers: dict[int, Answer] = field(default_factory=dict)
    files: int = 0

    def ask(self, cases: Sequence[Case]) -> dict[int, Answer]:
        """Answers by ``id(case)``."""
        keyed = sorted(enumerate(cases), key=lambda pair: (pair[1].ansi, pair[1].tz, pair[0]))
        with uncompiled(self.spark), settings(self.spark, DEFAULTS_OF_4 | TIMES):
            for (ansi, tz), group in itertools.groupby(keyed, key=lambda pair: (pair[1].ansi, pair[1].tz)):
                self.spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
                self.spark.conf.set("spark.sql.session.timeZone", tz)
                members = [c for _, c in group]
                for start in range(0, len(members), self.chunk):
                    name = f"{ansi}-{tz.replace('/', '_')}-{start}"
                    self._ask_chunk(members[start : start + self.chunk], name)
        self.spark.conf.set("spark.sql.ansi.enabled", "true")
        self.spark.conf.set("spark.sql.session.timeZone", "UTC")
        return self.answers

    def _ask_chunk(self, cases: list[Case], name: str) -> None:
        rows = [rows_of(c) for c in cases]
        height = max(map(len, rows))
        view = self._store(cases, rows, height, f"{name}-all")
        failures = self._unsound(view, self._strings(cases), 0)
        if failures:
            for i, failure in failures.items():
                self.answers[id(cases[i])] = Answer(pa.nulls(0), [], t.NULL, True, failure=failure)
            sound = [i for i in range(len(cases)) if i not in failures]
            if not sound:
                return
            cases, rows = [cases[i] for i in sound], [rows[i] for i in sound]
            view = self._store(cases, rows, height, f"{name}-sound")
        strings = self._strings(cases)
        errors = self._errors(view, strings, cases, rows)
        try:
            frame, table = self._values(cases, strings, rows, errors, view)
        except Exception:
            # an undeclared error: look at every row of every case
            errors = self._errors(view, strings, cases, rows, True)
            frame, table = self._values(cases, strings, rows, errors, view)
        types = frame.schema
        tight = self.spark.sql(select(self._strings(cases, self._tight), view)).schema
        for i, case in enumerate(cases):
            column = table.column(i).combine_chunks()
            column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
            self.answers[id(case)] = Answer(
                column.slice(0, len(rows[i])), errors[i], column.type, types[i].nullable, tight[i].nullable
            )

    def _unsound(self, view: str, strings: list[str], first: int) -> dict[int, str]:
        """The calls that Spark refuses to analyze, found by halves: number and message."""
        try:
            self.spark.sql(select(strings, view))  # analyzes
        except Exception as error:
            if len(strings) == 1:
                return {first: str(error)[:300]}
            half = len(strings) // 2
            return self._unsound(view, strings[:half], first) | self._unsound(
                view, strings[half:], first + half
            )
        return {}

    def _values(
        self,
        cases: list[Case],
        strings: list[str],
        rows: list[list[tuple[Any, ...]]],
        errors: list[list[str | None]],
        view: str,
    ) -> tuple[Any, pa.Table]:
        """The answers on the rows that do not raise; the others have NULL arguments."""
        if any(itertools.chain.from_iterable(errors)):
            good = [
                [tuple([None] * len(r)) if e else r for r, e in zip(*pair, strict=True)]
                for pair in zip(rows, errors, strict=True)
            ]
            view = self._store(cases, good, max(map(len, rows)), f"{view}-good")
        frame = self.spark.sql(select(strings, view))
        table = comparable_table(frame)
        for i in converted_columns(frame.schema):
            intervals = table.column(i).cast(t.LONG).cast(t.YEAR_MONTH)
            table = table.set_column(i, table.field(i).with_type(t.YEAR_MONTH), intervals)
        return frame, table

    def _strings(self, cases: Sequence[Case], reference: Reference | None = None) -> list[str]:
        """Spark's text of each call over the columns of the stored file."""
        refer = reference or self._reference
        return [c.text([refer(i, j, a) for j, a in enumerate(c.columns)]) for i, c in enumerate(cases)]

    @staticmethod
    def _reference(i: int, j: int, arg: Arg) -> str:
        column = f"c{i}_{j}"
        if arg.dtype == t.YEAR_MONTH:
            return f"make_ym_interval(0, {column})"
        return f"(timestamp_micros({column}) - timestamp_micros(0))" if arg.dtype == t.DAY_TIME else column

    @classmethod
    def _tight(cls, i: int, j: int, arg: Arg) -> str:
        """A reference Spark takes for non-nullable, for analysis only."""
        if t.is_nested(arg.dtype) or t.is_interval(arg.dtype):
            return cls._reference(i, j, arg)
        defaults = {
            t.DATE: "date'2000-01-01'",
            t.TIMESTAMP_NTZ: "timestamp_ntz'2000-01-01'",
            t.BINARY: "X'00'",
            t.TIME: "time'00:00:00'",
        }
        if t.is_timestamp(arg.dtype):
            default = "timestamp'2000-01-01 00:00:00'"
        else:
            default = defaults.get(arg.dtype) or f"cast('1' as {t.spark_name(arg.dtype)})"
            if arg.dtype == t.STRING:
                default = "'1'"
            elif arg.dtype == t.BOOL:
                default = "true"
            elif arg.dtype not in defaults:
                default = f"cast(1 as {t.spark_name(arg.dtype)})"
            if t.is_decimal(arg.dtype):
                default = f"0.{'0' * arg.dtype.scale}BD" if arg.dtype.scale else "0BD"
        try_default = f"coalesce(c{i}_{j}, {default})"
        return try_default

    def _store(self, cases: list[Case], rows: list[list[tuple[Any, ...]]], height: int, name: str) -> str:
        arrays, names = [pa.array(range(height), pa.int32())], ["row"]
        for i, case in enumerate(cases):
            for j, arg in enumerate(case.columns):
                values = [r[j] for r in rows[i]] + [None] * (height - len(rows[i]))
                arrays.append(column_array(storage_type(arg.dtype), values))
                names.append(f"c{i}_{j}")
        self.files += 1
        path = self.directory / f"{self.files}.parquet"
        table = pa.table(arrays, names)
        pq.write_table(table, path, compression="none")
        view = "parity_" + "".join(ch if ch.isalnum() else "_" for ch in name)
        # a schema in hand saves the job that would look for it
        self.spark.read.schema(spark_schema_of(table.schema)).parquet(str(path)).createOrReplaceTempView(view)
        return view

    def _errors(
        self,
        view: str,
        strings: list[str],
        cases: list[Case],
        rows: list[list[tuple[Any, ...]]],
        everything: bool = False,
    ) -> list[list[str | None]]:
        """Spark's error class for each row of each case, by evaluating its expression on single rows."""
        found: list[list[str | None]] = [[None] * len(r) for r in rows]
        fallible = [i for i, c in enumerate(cases) if everything or self._fallible(c)]
        if not fallible:
            return found
        jvm = self.spark.sparkContext._jvm
        expressions = jvm.org.apache.spark.sql.catalyst.expressions
        logging.getLogger("SQLQueryContextLogger").disabled = True  # it would print each expected error
        sequence = getattr(getattr(expressions, "package$"), "MODULE$").AttributeSeq
        query = select([*(strings[i] for i in fallible), "row"], view)
        plan = self.spark.sql(query)._jdf.queryExecution().optimizedPlan()
        output = plan.child().output()
        order = ", ".join(x.rpartition("#")[0] for x in output.mkString(",").split(","))
        read = self.spark.sql(f"select {order} from {view}")
        picked = list(read._jdf.queryExecution().executedPlan().executeCollect())
        attributes = sequence(output)
        for n, i in enumerate(fallible):
            call = plan.projectList().apply(n).child()
            bound = expressions.BindReferences.bindReference(call, attributes, False)
            with unconverted_errors():
                for k in range(len(rows[i])):
                    try:
                        bound.eval(picked[k])
                    except Exception as error:
                        found[i][k] = error_class(error)
        return found

    @staticmethod
    def _fallible(case: Case) -> bool:
        expr = case.expr([Column(f"a{j}", engine_type(a.dtype, case.tz)) for j, a in enumerate(case.columns)])
        # BigDecimal's remainder can also give up with an exception of Java's own
        return can_raise(expr) or (
            case.function in ("mod", "pmod", "div") and t.is_decimal(case.columns[0].dtype)
        )


def select(strings: Sequence[str], view: str) -> str:
    """One SELECT of all these calls."""
    return f"select {', '.join(f'{text} as r{i}' for i, text in enumerate(strings))} from {view}"


def error_class(error: Exception) -> str:
    """Spark's error class of what py4j or pyspark raised."""
    get = getattr(error, "getCondition", None) or getattr(error, "getErrorClass", None)
    found = get() if get is not None else None
    if found:
        return str(found)
    java = getattr(error, "java_exception", None)
    if java is not None:
        try:
            return str(java.getCondition())
        except Exception:
            return str(java.getClass().getSimpleName())
    return type(error).__name__
