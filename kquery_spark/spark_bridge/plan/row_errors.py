"""Finds the expressions that raise an error for a row, with Spark's own evaluation but without a job per expression."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import Any

import py4j.java_gateway
import py4j.protocol
from pyspark.sql import SparkSession

from kquery_spark.spark_bridge.session.bridge import get_bridge


class RowErrors:
    """Evaluates the expressions of an optimized ``SELECT`` for the rows that it reads."""

    def __init__(self, spark: SparkSession, plan: Any) -> None:
        bridge = get_bridge(spark)
        self._jvm = bridge.jvm
        expressions = bridge.gateway.jvm.org.apache.spark.sql.catalyst.expressions
        package = getattr(getattr(expressions, "package$"), "MODULE$")
        # each lookup of a class by name is a py4j call
        self._projection = expressions.InterpretedMutableProjection
        self._bind = expressions.BindReferences.bindReference
        self._calls = plan.projectList()
        self._columns: dict[int, Any] = {}
        output = plan.child().output()
        self._attributes = package.AttributeSeq(output)
        # the child computes common subexpressions, and may raise errors itself
        read = bridge.frame(plan.child())._jdf.queryExecution().executedPlan()
        with unconverted_errors():
            self._rows = read.executeCollect()
        logging.getLogger("SQLQueryContextLogger").disabled = True  # it would print each expected error

    def first(self, columns: Sequence[int]) -> dict[int, str]:
        """Map each column of the SELECT that raises an error to the error class of the first failing row."""
        try:
            with unconverted_errors():
                self._evaluate(columns)
        except py4j.protocol.Py4JJavaError as error:
            self._forget(columns)
            if len(columns) == 1:
                return {columns[0]: java_error_class(error)}
        else:
            return {}
        half = len(columns) // 2
        return self.first(columns[:half]) | self.first(columns[half:])

    def every(self, column: int) -> set[str]:
        """The error classes of all rows that raise an error."""
        classes = set()
        with unconverted_errors():
            for row in self._rows:
                try:
                    self._bound(column).eval(row)
                except py4j.protocol.Py4JJavaError as error:
                    self._forget([column])
                    classes.add(java_error_class(error))
        return classes

    def _evaluate(self, columns: Sequence[int]) -> None:
        """Evaluate a projection of these columns for all rows, in one JVM call."""
        bound = self._jvm.mutable_sequence(*map(self._bound, columns))
        self._jvm.list_of(self._rows).foreach(self._projection(bound.toIndexedSeq()))

    def _bound(self, column: int) -> Any:
        if column not in self._columns:
            self._columns[column] = self._bind(self._calls.apply(column).clone(), self._attributes, False)
        return self._columns[column]

    def _forget(self, columns: Sequence[int]) -> None:
        """Discard expressions that may have raised: map builders still have entries, and would raise another error."""
        for column in columns:
            self._columns.pop(column, None)


@contextlib.contextmanager
def unconverted_errors() -> Iterator[None]:
    """A block in which py4j's errors are not converted, since PySpark makes about 30 JVM calls to convert an error."""
    converting = py4j.java_gateway.get_return_value
    py4j.java_gateway.get_return_value = py4j.protocol.get_return_value
    try:
        yield
    finally:
        py4j.java_gateway.get_return_value = converting


def is_java_error(error: BaseException) -> bool:
    """Return whether an error comes from the JVM and was not converted by PySpark."""
    return isinstance(error, py4j.protocol.Py4JJavaError)


def java_error_class(error: Any) -> str:
    """Spark's error class of a JVM error; the Java class if it has none."""
    java = error.java_exception
    try:
        return str(java.getErrorClass())  # getCondition is its other name, which Spark 3.5 lacks
    except Exception:
        return str(java.getClass().getSimpleName())
