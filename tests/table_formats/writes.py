"""Statements that write to tables of a format, by Spark and with the engine."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

import kquery_spark as kq
from kquery_spark.accelerate import statements
from kquery_spark.spark_bridge.session.failures import error_class
from tests.conftest import settings
from tests.table_formats.queries import GROUPED, whole

GROUPS = "SELECT k, count(*) AS n, max(d) AS x FROM {source} GROUP BY k"


@contextmanager
def enabled(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """The session with the engine; gives for each statement whether its query was given to the engine."""
    planned: list[bool] = []
    real = statements._plan_write

    def spy(*arguments: Any) -> Any:
        result = real(*arguments)
        planned.append(result is not None)
        return result

    with monkeypatch.context() as patched, warnings.catch_warnings():
        patched.setattr(statements, "_plan_write", spy)
        warnings.simplefilter("error", kq.FallbackWarning)
        kq.enable(spark, when="always")
        try:
            yield planned
        finally:
            kq.disable(spark)


def check_written_tables(
    spark: Any, monkeypatch: pytest.MonkeyPatch, prefix: str, using: str, source: str
) -> None:
    """Check writes and their errors with two tables whose names begin with ``prefix``, and drop them."""
    plain, fast = f"{prefix}_plain", f"{prefix}_fast"
    try:
        _check_writes(spark, monkeypatch, plain, fast, using, source)
        _check_errors(spark, monkeypatch, fast, source)
    finally:
        for name in (plain, fast):
            spark.sql(f"DROP TABLE IF EXISTS {name}")


def _check_writes(
    spark: Any, monkeypatch: pytest.MonkeyPatch, plain: str, fast: str, using: str, source: str
) -> None:
    """What statements and writers leave in tables is the same with the engine; all of their queries are its."""
    groups = GROUPS.format(source=source)
    frame = spark.sql(groups)
    steps: Sequence[Callable[[str], Any]] = (
        lambda t: spark.sql(f"CREATE TABLE {t} USING {using} AS {groups}"),
        lambda t: spark.sql(f"INSERT INTO {t} {groups}"),
        lambda t: spark.sql(f"INSERT INTO {t} SELECT k + 100, max(n), 1 FROM {t} GROUP BY k"),
        lambda t: spark.sql(f"INSERT OVERWRITE {t} SELECT k, sum(n), sum(x) FROM {t} GROUP BY k"),
        lambda t: spark.sql(f"CREATE OR REPLACE TABLE {t} USING {using} AS SELECT max(x) AS x FROM {t} GROUP BY k"),
        lambda t: frame.writeTo(t).using(using).createOrReplace(),
        lambda t: frame.writeTo(t).append(),
        lambda t: frame.write.insertInto(t),
        lambda t: frame.write.format(using).mode("overwrite").saveAsTable(t),
    )  # fmt: skip
    for i, step in enumerate(steps):
        step(plain)
        with enabled(spark, monkeypatch) as planned:
            step(fast)
        assert all(planned), i
        assert spark.table(fast).schema == spark.table(plain).schema
        rows = [sorted(map(repr, spark.table(t).collect())) for t in (fast, plain)]
        assert rows[0] == rows[1] != [], (i, rows)


def check_statements(spark: Any, templates: Sequence[str], changed: str, expected: str) -> None:
    """Check that statements leave the same rows in ``changed`` with the engine enabled as in ``expected`` without it.

    Both tables have the same rows at first. ``{t}`` in a template stands for the table.
    """
    for template in templates:
        kq.enable(spark)
        try:
            spark.sql(template.format(t=changed)).collect()
            rows = sorted(map(tuple, spark.table(changed).collect()), key=str)
        finally:
            kq.disable(spark)
        spark.sql(template.format(t=expected)).collect()
        assert rows == sorted(map(tuple, spark.table(expected).collect()), key=str), template
        whole(spark, GROUPED.format(t=changed))


def _check_errors(spark: Any, monkeypatch: pytest.MonkeyPatch, table: str, source: str) -> None:
    """An error of the data is the same as in Spark, and leaves the table as it was."""
    failing = f"SELECT k, 1L AS n, sum(1 / (k - 3)) AS x FROM {source} GROUP BY k"
    before = spark.table(table).count()
    with settings(spark, {"spark.sql.ansi.enabled": "true"}):
        for write in (
            lambda: spark.sql(f"INSERT INTO {table} {failing}"),
            lambda: spark.sql(failing).writeTo(table).append(),
        ):
            with enabled(spark, monkeypatch), pytest.raises(Exception) as raised:
                write()
            assert error_class(raised.value) == "DIVIDE_BY_ZERO" or "DIVIDE_BY_ZERO" in str(raised.value)
            assert "kquery_spark" not in str(raised.value)
    assert spark.table(table).count() == before
