"""Steps that call Python functions, fetch large results, or write sorted or partitioned files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf as _pandas_udf

from benchmarks.pipelines.sources import Paths, Steps, clicks, orders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STEPS = Steps()


@STEPS
def pandas_udf(spark: SparkSession, paths: Paths, out: str) -> Any:
    """Compute the attention of each click by a pandas UDF, and aggregate the result by device."""

    def rate(duration_ms: pd.Series, scroll: pd.Series) -> pd.Series:
        return (duration_ms / 60_000 + scroll.fillna(0)).clip(0, 1)

    vectorized: Any = _pandas_udf  # its type hints require the argument functionType
    attention = vectorized(rate, "double")
    rated = clicks(spark, paths).withColumn("attention", attention("duration_ms", "scroll"))
    return (
        rated.groupBy("device")
        .agg(F.avg("attention").alias("attention"), F.count("*").alias("clicks"))
        .collect()
    )


@STEPS
def python_udf(spark: SparkSession, paths: Paths, out: str) -> Any:
    """Classify the notes of order lines by a Python UDF, and count the classes."""

    def classify(note: Any, gift: Any) -> Any:
        if note is None:
            return "none"
        first = note.split(",")[0]
        return ("gift " if gift else "plain ") + ("short" if len(first) < 12 else "long")

    # as users write it, without type hints: PySpark warns about hints that are not pandas types
    classify.__annotations__ = {}
    kind = F.udf(classify, "string")
    noted = orders(spark, paths).withColumn("kind", kind("note", "gift"))
    return noted.groupBy("kind").agg(F.count("*").alias("lines"), F.sum("total").alias("revenue")).collect()


@STEPS
def to_pandas(spark: SparkSession, paths: Paths, out: str) -> pd.DataFrame:
    """Fetch every tenth click as a pandas DataFrame."""
    return clicks(spark, paths).filter(F.col("click_id") % 10 == 0).drop("url", "referrer").toPandas()


@STEPS
def partitioned_write(spark: SparkSession, paths: Paths, out: str) -> None:
    """Write the clicks partitioned by day."""
    daily = clicks(spark, paths).withColumn("day", F.to_date("clicked_at"))
    daily.write.mode("overwrite").partitionBy("day").parquet(out)


@STEPS.ordered
def sorted_write(spark: SparkSession, paths: Paths, out: str) -> None:
    """Sort the paid and shipped order lines by a string, a timestamp, a decimal, and the key, and write them."""
    lines = orders(spark, paths).filter(F.col("status").isin("paid", "shipped"))
    lines.orderBy("country", F.col("ordered_at").desc(), "total", "load_id").write.mode("overwrite").parquet(
        out
    )
