"""Opens the sources of the steps as DataFrames, and collects the steps of each module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from benchmarks.pipelines.data import CUSTOMERS_DDL, ORDERS_DDL, STORES_DDL
from benchmarks.suites.base import Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Paths = Mapping[str, str]
Job = Callable[..., Any]


def orders(spark: SparkSession, paths: Paths) -> DataFrame:
    """The order lines, from CSV with a declared schema."""
    return spark.read.schema(ORDERS_DDL).option("header", True).csv(paths["orders"])


def clicks(spark: SparkSession, paths: Paths) -> DataFrame:
    """The clicks, from Parquet."""
    return spark.read.parquet(paths["clicks"])


def customers(spark: SparkSession, paths: Paths) -> DataFrame:
    """The customers, from JSON with a declared schema."""
    return spark.read.schema(CUSTOMERS_DDL).json(paths["customers"])


def stores(spark: SparkSession, paths: Paths) -> DataFrame:
    """The 200 stores, from CSV with a declared schema."""
    return spark.read.schema(STORES_DDL).option("header", True).csv(paths["stores"])


class Steps:
    """Collects the steps of a module in the order of their definitions."""

    def __init__(self) -> None:
        self.all: list[Step] = []

    def __call__(self, run: Job) -> Job:
        """Add a step whose result is compared as a multiset of rows."""
        self.all.append(Step(run.__name__, run))
        return run

    def ordered(self, run: Job) -> Job:
        """Add a step that writes rows in a total order, which is compared, too."""
        self.all.append(Step(run.__name__, run, ordered=True))
        return run
