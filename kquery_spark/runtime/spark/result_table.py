"""Converts the rows of the last stage to the Arrow table that Spark's ``toArrow`` returns."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql.types import StructType

from kquery_spark.spark_bridge.frames.pyspark_names import arrow_schema_of
from kquery_spark.types.arrow_types import cast_table
from kquery_spark.types.names import nullable_within


def result_table(batches: Iterable[pa.RecordBatch], produced: pa.Schema, schema: StructType) -> pa.Table:
    """Return batches of the schema ``produced`` as a table with the names and types of ``schema``."""
    target = arrow_schema_of(schema)
    parts = [b.rename_columns(target.names) for b in batches if b.num_rows]
    if not parts:  # PySpark expects at least one chunk a column
        return target.empty_table()
    named = pa.schema([f.with_name(n) for f, n in zip(produced, target.names, strict=True)])
    table = pa.Table.from_batches(parts, schema=named)
    try:
        return cast_table(table, target)
    except pa.ArrowInvalid:
        # A NULL struct with fields that are declared NOT NULL: Spark's rows can have it, Arrow's columns cannot.
        return table.cast(pa.schema([f.with_type(nullable_within(f.type)) for f in target]))
