"""Column types that PySpark does not exchange with Python workers, and the types that replace them during the exchange."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, IntegerType, StructType, YearMonthIntervalType

from kquery_spark.spark_bridge.frames.pyspark_names import arrow_table


def crossing_type(dtype: DataType) -> DataType:
    """The type in which values are exchanged: int for year-month intervals, which the JVM stores as ints."""
    return IntegerType() if isinstance(dtype, YearMonthIntervalType) else dtype


def converted_columns(schema: StructType) -> list[int]:
    """The positions of columns that are exchanged in another type."""
    return [i for i, f in enumerate(schema.fields) if isinstance(f.dataType, YearMonthIntervalType)]


def comparable_table(frame: DataFrame) -> pa.Table:
    """Collect a DataFrame. Year-month intervals, which PySpark cannot collect, become numbers of months."""
    converted = converted_columns(frame.schema)
    if not converted:
        return arrow_table(frame)
    names = [f"c{i}" for i in range(len(frame.schema))]
    months = {names[i]: F.col(names[i]).cast("interval month").cast("int") for i in converted}
    return arrow_table(frame.toDF(*names).withColumns(months)).rename_columns(frame.schema.names)
