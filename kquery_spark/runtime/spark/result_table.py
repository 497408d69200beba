"""The rows of a last stage as the Arrow table that Spark's ``toArrow`` gives."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql.types import StructType

from kquery_spark.spark_bridge.frames.pyspark_names import arrow_schema_of
from kquery_spark.types.arrow_types import cast_table
from kquery_spark.types.names import nullable_within


def result_table(batches: Iterable[pa.RecordBatch], produced: pa.Schema, schema: StructType) -> pa.Table:
    """Batches of a last stage, whose schema is ``produced``, under the names and types of the result's ``schema``."""
    target = arrow_schema_of(schema)
    parts = [b.rename_columns(target.names) for b in batches if b.num_rows]
    if not parts:  # PySpark expects at least one chunk a column
        return target.empty_table()
    named = pa.schema([f.with_name(n) for f, n in zip(produced, target.names, strict=True)])
    table = pa.Table.from_batches(parts, schema=named)
    try:
        return cast_table(table, target)
    except pa.ArrowInvalid:
        # a NULL struct with fields that are declared not NULL, which Spark's rows can have and Arrow's columns cannot
        return table.cast(pa.schema([f.with_type(nullable_within(f.type)) for f in target]))
