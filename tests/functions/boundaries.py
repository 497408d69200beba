"""Compares functions at the ends of their types' ranges with Spark: `python -m tests.functions.boundaries [GROUPS and WORDS]`.

Each expression runs over a table of boundary values, and once per row with these values as literals. A row may raise an
error; then the other rows are compared without it, and Spark must raise an error for it too.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import kquery_spark as kq
from kquery_spark.config.engine import EngineConfig
from kquery_spark.errors import ExecutionError, KQueryError, PlanError, Unsupported
from kquery_spark.fuzz.settings import UNCOMPILED
from kquery_spark.spark_bridge.frames.crossing_types import comparable_table
from kquery_spark.spark_bridge.session.failures import SPARK_ERRORS, error_class
from tests.conftest import worker_environment
from tests.functions.boundary_expressions import EXPRESSIONS
from tests.functions.boundary_values import VALUES
from tests.sql.compare import row_difference
from tests.sql.engines import SPARK_SETTINGS

_ERRORS = (*SPARK_ERRORS, KQueryError)
#: Constant expressions of a pair of columns that are compared.
_MOST_CONSTANTS = 12
#: Errors of an expression that are compared.
_MOST_ERRORS = 3


@dataclass(frozen=True)
class Error:
    """An error that a run raised."""

    error: Exception

    @property
    def is_declined(self) -> bool:
        """True if the engine does not support the expression."""
        return isinstance(self.error, Unsupported | PlanError) and not isinstance(self.error, ExecutionError)

    def __str__(self) -> str:
        return f"{error_class(self.error) or type(self.error).__name__}: {str(self.error)[-300:]!r}"


def outcome(run: Callable[[], pa.Table]) -> pa.Table | Error:
    """The rows of a run, or its error."""
    try:
        return run()
    except _ERRORS as error:
        return Error(error)


@dataclass
class Probe:
    """Spark and the engine with the tables of boundary values."""

    spark: SparkSession
    directory: Path
    ansi: bool
    context: kq.ExecutionContext = field(init=False)
    tables: dict[tuple[str, ...], list[tuple[str, ...]]] = field(default_factory=dict)
    declined: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.spark.conf.set("spark.sql.ansi.enabled", str(self.ansi).lower())
        self.context = kq.ExecutionContext(
            config=EngineConfig(parallelism=2), time_zone="UTC", ansi=self.ansi, case_sensitive=False
        )

    def findings(self, expression: str) -> Iterator[str]:
        """Sentences about the differences of an expression."""
        kinds = tuple(name for name in VALUES if f"{{{name}}}" in expression)
        table, rows = self._table(kinds)
        columns = expression.format(**{kind: kind for kind in kinds})
        yield from self._of_columns(columns, table, len(rows))
        chosen = rows[:: max(1, len(rows) // _MOST_CONSTANTS)]
        yield from self._of_constants(
            [expression.format(**dict(zip(kinds, row, strict=True))) for row in chosen]
        )

    def _table(self, kinds: tuple[str, ...]) -> tuple[str, list[tuple[str, ...]]]:
        name = "t_" + "_".join(kinds)
        if kinds not in self.tables:
            rows = list(product(*(VALUES[kind] for kind in kinds)))
            path = str(self.directory / name)
            if not Path(path).exists():
                columns = ", ".join(["id", *kinds])
                values = ", ".join(f"({i}, {', '.join(row)})" for i, row in enumerate(rows))
                self.spark.sql(f"SELECT * FROM VALUES {values} AS v({columns})").coalesce(1).write.parquet(
                    path
                )
            self.spark.read.parquet(path).createOrReplaceTempView(name)
            with contextlib.suppress(Unsupported):  # then the context declines every query of this table
                self.context.register_parquet(name, path)
            self.tables[kinds] = rows
        return name, self.tables[kinds]

    def _of_columns(self, expression: str, table: str, count: int) -> Iterator[str]:
        sql = f"SELECT id, {expression} AS x FROM {table}"
        ours = outcome(lambda: self.context.sql(sql).to_arrow())
        if isinstance(ours, Error) and ours.is_declined:
            self.declined[expression] = str(ours)
            theirs = outcome(lambda: comparable_table(self.spark.sql(sql)))
            if not isinstance(theirs, Error):
                yield from self._of_plan(sql, theirs)
            return
        failed: list[int] = []
        if isinstance(ours, Error):
            single = [
                outcome(lambda i=i: self.context.sql(f"{sql} WHERE id = {i}").to_arrow())
                for i in range(count)
            ]
            failed = [i for i, result in enumerate(single) if isinstance(result, Error)]
            for i in failed[:: max(1, len(failed) // _MOST_ERRORS)]:
                yield from self._of_error(f"{sql} WHERE id = {i}", single[i])
            sql += f" WHERE id NOT IN ({', '.join(map(str, failed))})"
            if len(failed) == count:
                return
            ours = outcome(lambda: self.context.sql(sql).to_arrow())
        theirs = outcome(lambda: comparable_table(self.spark.sql(sql)))
        if isinstance(theirs, Error):
            kept = [i for i in range(count) if i not in failed]
            for i in kept[:: max(1, len(kept) // 40)]:
                one = outcome(
                    lambda i=i: comparable_table(self.spark.sql(sql.split(" WHERE ")[0] + f" WHERE id = {i}"))
                )
                if isinstance(one, Error):
                    yield f"row {i}: Spark raises {one}, engine gives rows"
                    break
            return
        yield from _difference("columns", theirs, ours)
        yield from self._of_plan(sql, theirs)

    def _of_plan(self, sql: str, theirs: pa.Table) -> Iterator[str]:
        try:
            frame = kq.kquery_plan(self.spark.sql(sql), when="always", fallback="error")
        except Unsupported as declined:
            self.declined[sql] = f"kquery_plan: {declined}"
            return
        ours = outcome(lambda: comparable_table(frame))
        if isinstance(ours, Error) and '"name": "Unsupported"' in str(ours.error):
            self.declined[sql] = f"kquery_plan, when it sees the rows: {ours}"
            return
        yield from _difference("kquery_plan", theirs, ours)

    def _of_constants(self, expressions: Sequence[str]) -> Iterator[str]:
        answered: list[str] = []
        errors: list[tuple[str, Error]] = []
        for sql in expressions:
            ours = outcome(lambda sql=sql: self.context.sql(f"SELECT {sql} AS x").to_arrow())
            if not isinstance(ours, Error):
                answered.append(sql)
            elif ours.is_declined:
                self.declined[sql] = str(ours)
            else:
                errors.append((sql, ours))
        for sql, error in errors[:: max(1, len(errors) // _MOST_ERRORS)]:
            yield from self._of_error(f"SELECT {sql} AS x", error)
        if answered:
            yield from self._of_answered(answered)

    def _of_answered(self, expressions: Sequence[str]) -> Iterator[str]:
        sql = "SELECT " + ", ".join(f"{expression} AS x{i}" for i, expression in enumerate(expressions))
        theirs = outcome(lambda: comparable_table(self.spark.sql(sql)))
        if not isinstance(theirs, Error):
            for found in _difference("constants", theirs, outcome(lambda: self.context.sql(sql).to_arrow())):
                yield f"{sql[:400]}: {found}"
        elif len(expressions) > 1:
            half = len(expressions) // 2
            yield from self._of_answered(expressions[:half])
            yield from self._of_answered(expressions[half:])
        else:
            yield f"{sql}: Spark raises {theirs}, the engine gives rows"

    def _of_error(self, sql: str, ours: Error) -> Iterator[str]:
        if isinstance(ours.error, Unsupported):
            self.declined[sql] = str(ours)
            return
        theirs = outcome(lambda: comparable_table(self.spark.sql(sql)))
        if not isinstance(theirs, Error):
            yield f"{sql}: engine raises {ours}, Spark gives {theirs}"
        elif error_class(theirs.error) and error_class(theirs.error) != error_class(ours.error):
            yield f"{sql}: engine raises {ours}, Spark raises {theirs}"


def _difference(what: str, theirs: pa.Table, ours: pa.Table | Error) -> Iterator[str]:
    if isinstance(ours, Error):
        yield f"{what}: engine raises {ours}"
        return
    try:
        found = row_difference(theirs, ours, False, 0)
    except OverflowError:  # Python has no such dates
        tables = [theirs, ours.cast(theirs.schema)]
        if "id" in theirs.column_names:  # constants are in one row without a number
            tables = [table.sort_by("id") for table in tables]
        found = None if tables[0].equals(tables[1]) else "other dates"
    if found is not None:
        yield f"{what}: {found}"


def chosen(words: Sequence[str]) -> list[str]:
    """Expressions of the groups with one of these names, and those that contain one of the words; all without words."""
    return [
        expression
        for group, expressions in EXPRESSIONS.items()
        for expression in expressions
        if not words or group in words or any(word in expression for word in words)
    ]


def main(words: Sequence[str]) -> int:
    """Print the differences of expressions; the number of expressions with some."""
    os.environ.update(worker_environment())
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    settings = {
        **SPARK_SETTINGS,
        **UNCOMPILED,
        "spark.sql.session.timeZone": "UTC",
        "spark.kquery.driverBytes": "8m",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    expressions = chosen(words)
    different = 0
    with tempfile.TemporaryDirectory() as directory:
        for ansi in (True, False):
            probe = Probe(spark, Path(directory), ansi)
            for expression in expressions:
                found = list(probe.findings(expression))
                different += bool(found)
                for finding in found[:4]:
                    print(f"ANSI {ansi}: {expression}: {finding}", flush=True)
            for expression, reason in sorted(probe.declined.items()):
                print(f"declined, ANSI {ansi}: {expression[:120]}: {reason}")
    print(f"{2 * len(expressions)} runs of expressions, {different} differ")
    spark.stop()
    return different


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
