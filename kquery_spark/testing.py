"""Assertions for test suites of PySpark jobs: the engine runs a query and returns the same answer as Spark.

A failing comparison shows the schemas or the rows that differ, side by side, as ``chispa`` prints them::

    from kquery_spark.testing import assert_accelerated, assert_same_as_spark

    def test_revenue_by_region(spark):
        frame = revenue_by_region(spark)
        assert_accelerated(frame)
        assert_same_as_spark(frame)

The module needs the extra ``testing``: ``pip install 'kquery-spark[testing]'``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession

from kquery_spark.accelerate.explain import assert_accelerated as _assert_frame_accelerated
from kquery_spark.verify.compare import as_tuples, is_same
from kquery_spark.verify.verify import Comparison, Report, compare_with_spark

try:
    from chispa.rows_comparer import assert_generic_rows_equality
    from chispa.schema_comparer import SchemasNotEqualError, assert_schema_equality
except ImportError as missing:
    raise ImportError(
        "kquery_spark.testing needs the package chispa: pip install 'kquery-spark[testing]'"
    ) from missing

from chispa import DataFramesNotEqualError

__all__ = [
    "DataFramesNotEqualError",
    "SchemasNotEqualError",
    "assert_accelerated",
    "assert_same_as_spark",
]

#: Rows that a failure shows; the report above them says how many differ.
_SHOWN_ROWS = 20


def assert_accelerated(
    query: DataFrame | str, spark: SparkSession | None = None, *, coverage: float = 1.0
) -> None:
    """Raise AssertionError, with the fallback reasons, unless the engine can run the query.

    query: a DataFrame, or SQL for ``spark`` (the active session by default). coverage: the share of the nodes of Spark's
    optimized plan, 0 to 1, that the engine must be able to run. It does not matter whether the engine
    would be faster, because test data is small.
    """
    _assert_frame_accelerated(_frame(query, spark), coverage)


def assert_same_as_spark(query: DataFrame | str, spark: SparkSession | None = None) -> Report:
    """Run a query on Spark and in the engine, and raise an error that shows the differences unless the answers are equal.

    query: a DataFrame, or SQL for ``spark`` (the active session by default). Two answers are equal if column names, types,
    and nullability are the same, and if the rows are the same in any order; columns of the query's ORDER BY must agree row
    by row. Floating-point values may differ by a relative 1e-9. If both runs raise an error, its class must be the same.
    Parts that the engine declines run on Spark in both runs, so combine this with ``assert_accelerated``.

    Returns the report of ``kq.verify``. Raises chispa's ``SchemasNotEqualError`` or ``DataFramesNotEqualError`` if the
    results differ, and AssertionError if only one run raises an error or if the errors differ.
    """
    comparison = compare_with_spark(_frame(query, spark))
    if not comparison.report.ok:
        _raise_differences(comparison)
    return comparison.report


def _frame(query: DataFrame | str, spark: SparkSession | None) -> DataFrame:
    if not isinstance(query, str):
        return query
    session = spark or SparkSession.getActiveSession()
    if session is None:
        raise ValueError("no Spark session is active: pass one as the argument spark")
    return session.sql(query)


def _raise_differences(comparison: Comparison) -> None:
    report, (spark_schema, engine_schema) = comparison.report, comparison.schemas
    expected, actual = comparison.expected.result, comparison.actual.result
    if isinstance(expected, BaseException) or isinstance(actual, BaseException):
        raise AssertionError(str(report))
    try:
        assert_schema_equality(spark_schema, engine_schema)
    except SchemasNotEqualError as error:
        raise SchemasNotEqualError(
            f"{report}\nschema1 comes from Spark, schema2 from the engine:{error}"
        ) from None
    try:
        left, right = _different_rows(_rows(expected), _rows(actual))
    except (ValueError, OverflowError):  # dates that Python cannot represent: the report shows the first
        raise DataFramesNotEqualError(str(report)) from None
    try:
        assert_generic_rows_equality(left[:_SHOWN_ROWS], right[:_SHOWN_ROWS], _is_equal, {})
    except DataFramesNotEqualError as error:
        raise DataFramesNotEqualError(
            f"{report}\ndf1 comes from Spark, df2 from the engine:{error}"
        ) from None
    raise DataFramesNotEqualError(str(report))


def _rows(table: pa.Table) -> list[Row]:
    row = Row(*table.column_names)
    columns = [column.to_pylist() for column in table.columns]
    return [row(*values) for values in zip(*columns, strict=True)]


def _different_rows(expected: Sequence[Row], actual: Sequence[Row]) -> tuple[list[Any], list[Any]]:
    """Return the rows that differ, in pairs: those that the other side lacks, sorted so that similar rows form a pair.

    If both sides have the same rows in different orders, these are the rows whose positions differ. None fills up the side
    with fewer rows.
    """
    left = sorted(_rows_without(expected, actual), key=repr)
    right = sorted(_rows_without(actual, expected), key=repr)
    if not left and not right:
        left, right = list(expected), list(actual)
    pairs = [(a, b) for a, b in zip_longest(left, right) if not _is_equal(a, b)]
    return [a for a, _ in pairs], [b for _, b in pairs]


def _rows_without(rows: Sequence[Row], others: Sequence[Row]) -> list[Row]:
    """Return the rows that are left after each of ``others`` removed one equal row."""
    removed = Counter(map(repr, others))
    remaining = []
    for row in rows:
        key = repr(row)
        if removed[key]:
            removed[key] -= 1
        else:
            remaining.append(row)
    return remaining


def _is_equal(left: Any, right: Any) -> bool:
    """Return whether two rows are equal as ``kq.verify`` compares them; the side without a row is None."""
    return is_same(as_tuples(left), as_tuples(right))
