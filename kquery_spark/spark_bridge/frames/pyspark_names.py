"""Names of PySpark that some of the supported versions have in another module, or do not have."""

from __future__ import annotations

import inspect
from typing import Any, cast

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.serializers import ArrowStreamSerializer
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.pandas.types import to_arrow_schema as _to_arrow_schema
from pyspark.sql.types import StructType

from kquery_spark.errors import Unsupported
from kquery_spark.spark_bridge.session.setting_values import is_true
from kquery_spark.types import names as t
from kquery_spark.types.arrow_types import cast_table

try:
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
    from pyspark.util import PythonEvalType
except ImportError:  # before 4.0
    from pyspark import rdd as _rdd

    PythonEvalType = _rdd.PythonEvalType  # type: ignore[attr-defined,misc]
    ClassicDataFrame = DataFrame  # type: ignore[assignment,misc]

__all__ = [
    "HAS_TO_ARROW",
    "ClassicDataFrame",
    "PythonEvalType",
    "arrow_schema_of",
    "arrow_table",
    "create_frame",
    "error_condition",
    "spark_schema_of",
    "to_arrow",
]

HAS_TO_ARROW = hasattr(DataFrame, "toArrow")
"""True if this PySpark's DataFrame has ``toArrow``; the engine's own DataFrame always has it."""
_MAX_RECORDS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_SCHEMA_TAKES_ZONE = "timezone" in inspect.signature(_to_arrow_schema).parameters


def arrow_schema_of(schema: StructType, **options: Any) -> pa.Schema:
    """The Arrow schema that ``toArrow`` returns; timestamps are in UTC, whatever the session's time zone is.

    options: further arguments of PySpark's ``to_arrow_schema``.
    """
    if _SCHEMA_TAKES_ZONE:
        return _to_arrow_schema(schema, timezone="UTC", **options)
    return _to_arrow_schema(schema, **options)


def spark_schema_of(schema: pa.Schema) -> StructType:
    """Spark's schema of an Arrow schema; timestamps without a time zone are ``timestamp_ntz``.

    Raises Unsupported for year-month intervals, because the engine's schemas do not contain their fields.
    """
    if any(dtype == t.YEAR_MONTH or t.has_months_within(dtype) for dtype in schema.types):
        raise Unsupported("year-month intervals are not supported, except in its own queries")
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def create_frame(spark: SparkSession, table: pa.Table, schema: StructType) -> DataFrame:
    """``spark.createDataFrame(table, schema)``; PySpark accepts Arrow tables since 4.0.

    PySpark's method fails if ``spark.sql.execution.arrow.maxRecordsPerBatch`` is not positive, which means no limit. The
    rows then go to the JVM as on earlier releases.

    Raises pa.ArrowInvalid if a struct is NULL and has fields that are declared NOT NULL.
    """
    if HAS_TO_ARROW and int(spark.conf.get(_MAX_RECORDS, "1") or 1) > 0:
        return spark.createDataFrame(table, schema)
    context: Any = spark.sparkContext
    utils = context._jvm.org.apache.spark.sql.api.python.PythonSQLUtils
    batches = context._serialize_to_jvm(
        cast_table(table, _exchanged_schema(spark, schema)).to_batches(),
        ArrowStreamSerializer(),
        utils.readArrowStreamFromFile,
        context._jvm.org.apache.spark.sql.api.python.ArrowIteratorServer,
    )
    rows = utils.toDataFrame(batches, schema.json(), spark._jsparkSession)
    return ClassicDataFrame(rows, spark)


def _exchanged_schema(spark: SparkSession, schema: StructType) -> pa.Schema:
    """The Arrow schema in which the JVM expects rows from Python, with the large types if the session uses them."""
    if is_true(spark.conf.get("spark.sql.execution.arrow.useLargeVarTypes", "false")):
        return arrow_schema_of(schema, prefers_large_types=True)
    return arrow_schema_of(schema)


def arrow_table(frame: DataFrame) -> pa.Table:
    """``frame.toArrow()`` for all versions of PySpark."""
    return frame.toArrow() if hasattr(frame, "toArrow") else to_arrow(frame)


def to_arrow(frame: DataFrame) -> pa.Table:
    """PySpark's own ``toArrow``; versions without it build the table from the batches that ``toPandas`` collects."""
    if HAS_TO_ARROW:
        return ClassicDataFrame.toArrow(cast(Any, frame))
    collecting: Any = frame
    schema = arrow_schema_of(frame.schema)
    batches = [batch.rename_columns(schema.names) for batch in collecting._collect_as_arrow()]
    return cast_table(pa.Table.from_batches(batches), schema) if batches else schema.empty_table()


def error_condition(error: PySparkException) -> str | None:
    """Spark's error class of an error, for example ``DIVIDE_BY_ZERO``."""
    known: Any = error
    name = known.getCondition() if hasattr(error, "getCondition") else known.getErrorClass()
    return None if name is None else str(name)
