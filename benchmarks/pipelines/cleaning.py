"""Steps that read, clean, and reshape raw files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as F

from benchmarks.pipelines.sources import Paths, Steps, clicks, customers, orders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STEPS = Steps()


@STEPS
def csv_filter_group(spark: SparkSession, paths: Paths, out: str) -> Any:
    """Filter order lines and report revenue per country and channel."""
    lines = orders(spark, paths)
    return (
        lines.filter((F.col("status") != "cancelled") & (F.col("quantity") >= 3) & F.col("customer_id").isNotNull())
        .groupBy("country", "channel")
        .agg(F.count("*").alias("lines"), F.sum("total").alias("revenue"), F.max("shipped_at").alias("last_shipped"))
        .orderBy("country", "channel")
        .collect()
    )  # fmt: skip


@STEPS
def csv_to_parquet(spark: SparkSession, paths: Paths, out: str) -> None:
    """Convert all order lines from CSV to Parquet, partitioned by country."""
    lines = orders(spark, paths).withColumn("ordered_on", F.to_date("ordered_at"))
    lines.write.mode("overwrite").partitionBy("country").parquet(out)


@STEPS
def json_flatten_join(spark: SparkSession, paths: Paths, out: str) -> Any:
    """Infer the schema of the JSON customers, flatten them, join the orders, and report revenue per city and segment."""
    people = spark.read.json(paths["customers"]).select(
        "customer_id",
        F.concat_ws(" ", "name.first", "name.last").alias("name"),
        F.col("address.city").alias("home_city"),
        F.col("address.geo.lat").alias("latitude"),
        F.coalesce("segment", F.lit("unknown")).alias("segment"),
        F.size("interests").alias("interests"),
    )
    bought = orders(spark, paths).filter(F.col("status") == "delivered")
    return (
        bought.join(people, "customer_id")
        .groupBy("home_city", "segment")
        .agg(
            F.countDistinct("name").alias("names"),
            F.sum("total").alias("revenue"),
            F.max("latitude").alias("northernmost"),
            F.sum("interests").alias("interests"),
        )
        .collect()
    )


@STEPS
def json_explode(spark: SparkSession, paths: Paths, out: str) -> Any:
    """Count the customers per interest and country."""
    people = customers(spark, paths)
    return (
        people.select("address.country", "score", F.explode_outer("interests").alias("interest"))
        .groupBy("interest", "country")
        .agg(F.count("*").alias("customers"), F.avg("score").alias("score"))
        .collect()
    )


@STEPS
def dedupe_seven_keys(spark: SparkSession, paths: Paths, out: str) -> None:
    """Keep the latest version of each order line by ``row_number`` over seven sort keys, and write the wide rows."""
    latest = Window.partitionBy("order_id", "line").orderBy(
        F.col("updated_at").desc(),
        F.col("shipped_at").desc_nulls_last(),
        F.col("status"),
        F.col("channel"),
        F.col("total").desc(),
        F.col("note").asc_nulls_last(),
        F.col("load_id").desc(),
    )
    lines = orders(spark, paths).withColumn("rn", F.row_number().over(latest))
    lines.filter("rn = 1").drop("rn").write.mode("overwrite").parquet(out)


@STEPS
def dedupe_one_key(spark: SparkSession, paths: Paths, out: str) -> Any:
    """Keep the last loaded version of each order line by ``row_number`` over one sort key, and report by status."""
    latest = Window.partitionBy("order_id", "line").orderBy(F.col("load_id").desc())
    lines = orders(spark, paths).withColumn("rn", F.row_number().over(latest)).filter(F.col("rn") == 1)
    return (
        lines.groupBy("status")
        .agg(F.count("*").alias("lines"), F.sum("total").alias("revenue"), F.max("updated_at").alias("updated_at"))
        .collect()
    )  # fmt: skip


@STEPS
def drop_duplicates_count(spark: SparkSession, paths: Paths, out: str) -> int:
    """Count distinct combinations of customer, product, and day."""
    return orders(spark, paths).dropDuplicates(["customer_id", "product_id", "order_date"]).count()


@STEPS
def regex_and_dates(spark: SparkSession, paths: Paths, out: str) -> Any:
    """Extract parts of strings by regular expressions, parse dates, and aggregate by domain and month."""
    cleaned = (
        orders(spark, paths)
        .withColumn("domain", F.regexp_extract("email", r"@([a-z]+)\.", 1))
        .withColumn("digits", F.regexp_replace("phone", r"[^0-9]", ""))
        .withColumn("network", F.regexp_extract("ip", r"^(\d+)\.(\d+)", 2).cast("int"))
        .withColumn("day", F.to_date("order_date", "dd/MM/yyyy"))
        .filter(F.col("sku").rlike(r"^SKU-00[0-4]\d+$"))
    )
    return (
        cleaned.groupBy("domain", F.trunc("day", "month").alias("month"))
        .agg(
            F.count("*").alias("lines"),
            F.max("digits").alias("last_number"),
            F.sum("network").alias("networks"),
            F.sum("total").alias("revenue"),
        )
        .collect()
    )


@STEPS
def union_sources(spark: SparkSession, paths: Paths, out: str) -> Any:
    """Align the schemas of order lines and of purchases in the click stream, and aggregate their union."""
    shop = orders(spark, paths).select(
        F.lit("orders").alias("source"),
        "customer_id",
        "country",
        F.to_date("ordered_at").alias("day"),
        F.col("total").cast("decimal(14,2)").alias("amount"),
        "channel",
    )
    web = (
        clicks(spark, paths)
        .filter(F.col("event") == "purchase")
        .select(
            F.lit("clicks").alias("source"),
            F.col("revenue").cast("decimal(14,2)").alias("amount"),
            "country",
            "customer_id",
            F.to_date("clicked_at").alias("day"),
            "device",
        )
    )
    events = shop.unionByName(web, allowMissingColumns=True)
    return (
        events.groupBy("day", "country", F.coalesce("channel", "device").alias("through"))
        .agg(F.count("*").alias("events"), F.sum("amount").alias("amount"))
        .collect()
    )


@STEPS
def word_count(spark: SparkSession, paths: Paths, out: str) -> Any:
    """Split the notes into words, and list the hundred most frequent long ones."""
    split = orders(spark, paths).select(F.explode(F.split(F.lower("note"), r"[ ,]+")).alias("word"))
    return (
        split.filter(F.length("word") > 4)
        .groupBy("word")
        .count()
        .orderBy(F.col("count").desc(), "word")
        .limit(100)
        .collect()
    )


@STEPS
def filter_count(spark: SparkSession, paths: Paths, out: str) -> int:
    """Count the clicks that match a condition."""
    matching = clicks(spark, paths).filter((F.col("device") == "phone") & (F.col("duration_ms") > 30_000))
    return matching.count()
