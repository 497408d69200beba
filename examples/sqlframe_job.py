"""A sqlframe job on Spark that runs in the engine.

    pip install kquery-spark sqlframe
    python examples/sqlframe_job.py data/trips

sqlframe sends SQL to ``spark.sql`` of the running session. It collects by ``collect`` or ``toPandas`` and writes by
``write``. ``kq.enable`` covers these; nothing else in the job changes.
"""

from __future__ import annotations

import sys
from typing import Any

from pyspark.sql import SparkSession
from sqlframe.spark import SparkSession as SqlFrameSession
from sqlframe.spark import functions as F

import kquery_spark as kq


def report(path: str) -> list[Any]:
    """The number of trips and the highest fare for each number of passengers, computed by the running session."""
    trips = SqlFrameSession().read.parquet(path)
    fares = (
        trips.where(F.col("fare_amount") > 0)
        .groupBy("passenger_count")
        .agg(F.count("*").alias("trips"), F.max("fare_amount").alias("highest"))
        .orderBy("passenger_count")
    )
    return fares.collect()


if __name__ == "__main__":
    session = kq.configure(SparkSession.builder).getOrCreate()
    kq.enable(session)
    print(*report(sys.argv[1]), sep="\n")
