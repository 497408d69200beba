"""Steps with windows and versions: sessions, slowly changing dimensions, and machine-learning features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as F

from benchmarks.pipelines.sources import Paths, Steps, clicks, customers, orders

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STEPS = Steps()

_ATTRIBUTES = ("city", "country", "segment", "credit_limit")
_REFERENCE_DAY = "2025-04-01"


@STEPS
def lag_lead_running_sums(spark: SparkSession, paths: Paths, out: str) -> Any:
    """Compare each order line with the customer's previous and next one, compute running sums, and report by country."""
    in_order = Window.partitionBy("customer_id").orderBy("ordered_at", "load_id")
    until_now = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    lines = (
        orders(spark, paths)
        .filter(F.col("customer_id").isNotNull())
        .withColumn("previous", F.lag("total").over(in_order))
        .withColumn("next_at", F.lead("ordered_at").over(in_order))
        .withColumn("spent", F.sum("total").over(until_now))
        .withColumn("pieces", F.sum("quantity").over(until_now))
    )
    return (
        lines.groupBy("country")
        .agg(
            F.sum(F.col("total") - F.col("previous")).alias("change"),
            F.max(F.datediff("next_at", "ordered_at")).alias("longest_pause"),
            F.max("spent").alias("spent"),
            F.sum("pieces").alias("pieces"),
        )
        .collect()
    )


@STEPS
def sessionize(spark: SparkSession, paths: Paths, out: str) -> Any:
    """Split the clicks of each customer into sessions at pauses of 30 minutes, and report the sessions by day."""
    in_order = Window.partitionBy("customer_id").orderBy("clicked_at", "click_id")
    stream = (
        clicks(spark, paths)
        .withColumn("seconds", F.unix_timestamp("clicked_at"))
        .withColumn("pause", F.col("seconds") - F.lag("seconds").over(in_order))
        .withColumn("starts", F.when(F.col("pause").isNull() | (F.col("pause") > 1800), 1).otherwise(0))
        .withColumn("session", F.sum("starts").over(in_order))
    )
    sessions = stream.groupBy("customer_id", "session").agg(
        F.min("clicked_at").alias("begin"),
        (F.max("seconds") - F.min("seconds")).alias("length"),
        F.count("*").alias("clicks"),
        F.sum("revenue").alias("revenue"),
        F.max(F.col("event") == "purchase").alias("bought"),
    )
    return (
        sessions.groupBy(F.to_date("begin").alias("day"), "bought")
        .agg(
            F.count("*").alias("sessions"),
            F.avg("length").alias("length"),
            F.max("clicks").alias("clicks"),
            F.sum("revenue").alias("revenue"),
        )
        .collect()
    )


@STEPS
def slowly_changing_dimension(spark: SparkSession, paths: Paths, out: str) -> None:
    """Merge changes into the customer history as a type 2 dimension: close changed rows, add new versions and customers."""
    history = spark.read.parquet(paths["customer_history"])
    changes = spark.read.parquet(paths["customer_changes"])
    current = history.filter("is_current")
    same = F.lit(True)
    for name in _ATTRIBUTES:
        same = same & F.col(f"h.{name}").eqNullSafe(F.col(f"c.{name}"))
    changed = current.alias("h").join(changes.alias("c"), "customer_id").filter(~same)
    closed = changed.select("h.*", "c.changed_at").withColumn("valid_to", F.col("changed_at"))
    closed = closed.withColumn("is_current", F.lit(False)).drop("changed_at")
    new_versions = _as_current(changed.select("c.*"))
    new_customers = _as_current(changes.join(current, "customer_id", "left_anti"))
    changed_keys = changed.select("customer_id")
    unchanged = current.join(changed_keys, "customer_id", "left_anti")
    older = history.filter("NOT is_current")
    merged = (
        older.unionByName(unchanged).unionByName(closed).unionByName(new_versions).unionByName(new_customers)
    )
    merged.write.mode("overwrite").parquet(out)


def _as_current(changes: DataFrame) -> DataFrame:
    return changes.select(
        "customer_id",
        *_ATTRIBUTES,
        F.col("changed_at").alias("valid_from"),
        F.lit(None).cast("timestamp").alias("valid_to"),
        F.lit(True).alias("is_current"),
    )


@STEPS
def feature_table(spark: SparkSession, paths: Paths, out: str) -> None:
    """Build features per customer: activity in the last 7, 30, and 90 days, defaults for NULLs, and category indices."""
    recent = clicks(spark, paths).withColumn("age", F.datediff(F.lit(_REFERENCE_DAY), "clicked_at"))
    bought = orders(spark, paths).withColumn("age", F.datediff(F.lit(_REFERENCE_DAY), "ordered_at"))
    activity, spending = [], []
    for days in (7, 30, 90):
        within = F.col("age") <= days
        activity.append(F.count(F.when(within, True)).alias(f"clicks_{days}"))
        activity.append(F.sum(F.when(within, F.col("duration_ms"))).alias(f"duration_{days}"))
        spending.append(F.sum(F.when(within, F.col("total"))).alias(f"spent_{days}"))
        spending.append(F.count(F.when(within, True)).alias(f"lines_{days}"))
    people = customers(spark, paths).select(
        "customer_id", "segment", "score", F.col("address.country").alias("country")
    )
    features = (
        people.join(recent.groupBy("customer_id").agg(*activity), "customer_id", "left")
        .join(bought.groupBy("customer_id").agg(*spending, F.avg("rating").alias("rating")), "customer_id", "left")
        .fillna("unknown", subset=["segment"])
        .fillna(0)
    )  # fmt: skip
    for name in ("segment", "country"):
        features = features.join(F.broadcast(_index(people.fillna("unknown"), name)), name, "left")
    features.drop("segment", "country").write.mode("overwrite").parquet(out)


def _index(frame: DataFrame, column: str) -> DataFrame:
    """Number the values of a column from 0 for the most frequent one, as Spark ML's StringIndexer does."""
    frequent_first = Window.orderBy(F.col("count").desc(), column)
    counted = frame.groupBy(column).count()
    return counted.select(column, (F.row_number().over(frequent_first) - 1).alias(f"{column}_index"))
