"""Which expressions raise an error over a table's rows, evaluated by Spark's own expressions without a job for each."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

import py4j.java_gateway
import py4j.protocol
from pyspark.sql import SparkSession

from kquery_spark.spark_bridge.session import bridge


class RowErrors:
    """Evaluates the expressions of an optimized ``SELECT`` over the rows it reads."""

    def __init__(self, spark: SparkSession, plan: Any) -> None:
        self._gateway = bridge(spark).gateway
        self._expressions = self._gateway.jvm.org.apache.spark.sql.catalyst.expressions
        package = getattr(getattr(self._expressions, "package$"), "MODULE$")
        self._plan = plan
        output = plan.child().output()
        self._attributes = package.AttributeSeq(output)
        # the child computes what several expressions share, or one has twice, and may raise errors itself
        read = bridge(spark).frame(plan.child())._jdf.queryExecution().executedPlan()
        with unconverted_errors():
            self._rows = read.executeCollect()
        logging.getLogger("SQLQueryContextLogger").disabled = True  # it would print each expected error

    def first(self, column: int) -> str | None:
        """The class of the error that a column of the SELECT raises in its first row that raises one."""
        one = self._gateway.new_array(self._gateway.jvm.java.lang.Object, 1)
        one[0] = self._bound(column)
        wrap = self._gateway.jvm.scala.Predef.genericWrapArray
        projection = self._expressions.InterpretedMutableProjection(wrap(one).toIndexedSeq())
        try:
            with unconverted_errors():
                wrap(self._rows).foreach(projection)
        except py4j.protocol.Py4JJavaError as error:
            return java_error_class(error)
        return None

    def every(self, column: int) -> set[str]:
        """The classes of the errors of all rows."""
        bound, found = self._bound(column), set()
        with unconverted_errors():
            for row in self._rows:
                try:
                    bound.eval(row)
                except py4j.protocol.Py4JJavaError as error:
                    found.add(java_error_class(error))
        return found

    def _bound(self, column: int) -> Any:
        call = self._plan.projectList().apply(column)
        return self._expressions.BindReferences.bindReference(call, self._attributes, False)


@contextlib.contextmanager
def unconverted_errors() -> Iterator[None]:
    """Errors as py4j has them: PySpark asks the JVM some 30 questions of each before it raises its own."""
    converting = py4j.java_gateway.get_return_value
    py4j.java_gateway.get_return_value = py4j.protocol.get_return_value
    try:
        yield
    finally:
        py4j.java_gateway.get_return_value = converting


def is_java_error(error: BaseException) -> bool:
    """Whether an error is the JVM's own, which PySpark has not made one of its own of."""
    return isinstance(error, py4j.protocol.Py4JJavaError)


def java_error_class(error: Any) -> str:
    """Spark's error class of what the JVM raised; the Java class where it has none."""
    java = error.java_exception
    try:
        return str(java.getCondition())
    except Exception:
        return str(java.getClass().getSimpleName())
