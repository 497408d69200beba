"""Steps that join, aggregate, describe, or sample tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import Window
from pyspark.sql import functions as F

from benchmarks.pipelines.sources import Paths, Steps, clicks, customers, orders, stores

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import SparkSession

STEPS = Steps()


@STEPS
def join_many_aggregates(spark: SparkSession, paths: Paths, out: str) -> Any:
    """Join order lines with customers, and compute twenty aggregates per segment and category."""
    joined = orders(spark, paths).join(
        customers(spark, paths).select("customer_id", "segment", "score"), "customer_id"
    )
    numbers = ["quantity", "unit_price", "discount", "tax", "total"]
    aggregates = [F.sum(name).alias(f"sum_{name}") for name in numbers]
    aggregates += [F.min(name).alias(f"min_{name}") for name in numbers]
    aggregates += [F.max(name).alias(f"max_{name}") for name in numbers]
    aggregates += [
        F.count("*").alias("lines"),
        F.countDistinct("order_id").alias("orders"),
        F.avg("rating").alias("rating"),
        F.stddev("quantity").alias("spread"),
        F.sum(F.when(F.col("status") == "returned", F.col("total"))).alias("returned"),
    ]
    return joined.groupBy("segment", "category").agg(*aggregates).collect()


@STEPS
def broadcast_join(spark: SparkSession, paths: Paths, out: str) -> Any:
    """Join order lines with the small table of stores, and report by region and month of opening."""
    shops = stores(spark, paths).withColumn("opened", F.to_date("opened", "dd/MM/yyyy"))
    return (
        orders(spark, paths)
        .join(F.broadcast(shops), "store_id", "left")
        .groupBy("region", F.month("opened").alias("month"))
        .agg(F.sum("total").alias("revenue"), F.countDistinct("store").alias("stores"), F.avg("rating").alias("rating"))
        .collect()
    )  # fmt: skip


@STEPS
def pivot(spark: SparkSession, paths: Paths, out: str) -> Any:
    """Report revenue with a row for each country and a column for each status."""
    return (
        orders(spark, paths)
        .groupBy("country")
        .pivot("status")
        .agg(F.sum("total"))
        .orderBy("country")
        .collect()
    )


@STEPS
def crosstab(spark: SparkSession, paths: Paths, out: str) -> Any:
    """Count order lines by category and payment."""
    return orders(spark, paths).crosstab("category", "payment").collect()


@STEPS
def cube_report(spark: SparkSession, paths: Paths, out: str) -> Any:
    """Report revenue for all combinations of country, channel, and currency."""
    return (
        orders(spark, paths)
        .cube("country", "channel", "currency")
        .agg(F.sum("total").alias("revenue"), F.count("*").alias("lines"), F.grouping_id().alias("level"))
        .collect()
    )


@STEPS
def rollup_report(spark: SparkSession, paths: Paths, out: str) -> Any:
    """Report clicks by country, device, and day with subtotals."""
    return (
        clicks(spark, paths)
        .rollup("country", "device", F.to_date("clicked_at").alias("day"))
        .agg(F.count("*").alias("clicks"), F.sum("revenue").alias("revenue"), F.avg("scroll").alias("scroll"))
        .collect()
    )


@STEPS
def describe(spark: SparkSession, paths: Paths, out: str) -> pd.DataFrame:
    """Describe four numeric columns of the clicks."""
    columns = ["click_id", "duration_ms", "scroll", "revenue"]
    frame = clicks(spark, paths).describe(*columns).toPandas()
    # compared as floats: the last digits of the strings depend on the order of addition
    return frame.astype(dict.fromkeys(columns, float))


@STEPS
def summary(spark: SparkSession, paths: Paths, out: str) -> pd.DataFrame:
    """Summarize two columns with few distinct values, whose approximate percentiles are exact."""
    columns = ["quantity", "rating"]
    frame = orders(spark, paths).select(*columns).summary().toPandas()
    return frame.astype(dict.fromkeys(columns, float))


@STEPS
def approx_quantile(spark: SparkSession, paths: Paths, out: str) -> list[list[float]]:
    """Compute approximate quartiles of two columns with few distinct values, for which they are exact."""
    return orders(spark, paths).approxQuantile(["quantity", "rating"], [0.25, 0.5, 0.75], 0.01)


@STEPS
def top3_per_group(spark: SparkSession, paths: Paths, out: str) -> Any:
    """List the three largest order lines of each category and country."""
    largest = Window.partitionBy("category", "country").orderBy(F.col("total").desc(), "load_id")
    ranked = orders(spark, paths).withColumn("place", F.row_number().over(largest))
    return (
        ranked.filter(F.col("place") <= 3)
        .select("category", "country", "place", "load_id", "total", "product", "email", "note")
        .collect()
    )


@STEPS
def collect_lists(spark: SparkSession, paths: Paths, out: str) -> None:
    """Write the sorted lists of the products and categories that each customer bought."""
    bought = orders(spark, paths).filter("status IN ('paid', 'shipped', 'delivered')")
    (
        bought.groupBy("customer_id")
        .agg(
            F.sort_array(F.collect_list("sku")).alias("skus"),
            F.sort_array(F.collect_set("category")).alias("categories"),
            F.sum("total").alias("spent"),
        )
        .write.mode("overwrite")
        .parquet(out)
    )


@STEPS
def sixty_columns(spark: SparkSession, paths: Paths, out: str) -> Any:
    """Add sixty columns one by one, and sum all of them."""
    frame = orders(spark, paths)
    for number in range(60):
        share = F.coalesce("rating", F.lit(number % 5)) + F.col("product_id") % (number + 2)
        frame = frame.withColumn(f"feature_{number}", F.col("quantity") * (number + 1) + share)
    return frame.agg(*(F.sum(f"feature_{number}").alias(f"sum_{number}") for number in range(60))).collect()


@STEPS
def sample(spark: SparkSession, paths: Paths, out: str) -> Any:
    """Draw a sample of a tenth of the clicks with a seed, and report it by event."""
    drawn = clicks(spark, paths).sample(fraction=0.1, seed=42)
    return drawn.groupBy("event").agg(F.count("*").alias("clicks"), F.sum("click_id").alias("ids")).collect()
