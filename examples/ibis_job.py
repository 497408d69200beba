"""An ibis job on Spark that runs in the engine.

    pip install kquery-spark 'ibis-framework[pyspark]'
    python examples/ibis_job.py data/trips

ibis sends SQL to ``spark.sql``. It collects by ``toPandas`` (``execute``, ``to_pyarrow`` ...) and writes by ``write``
(``create_table``, ``to_parquet_dir``). ``kq.enable`` covers these; nothing else in the job changes.
"""

from __future__ import annotations

import sys

import ibis
import pyarrow as pa
from pyspark.sql import SparkSession

import kquery_spark as kq


def report(spark: SparkSession, path: str) -> pa.Table:
    """The number of trips and the highest fare for each number of passengers."""
    connection = ibis.pyspark.connect(spark)
    trips = connection.read_parquet(path, table_name="ibis_trips")
    fares = (
        trips.filter(trips.fare_amount > 0)
        .group_by("passenger_count")
        .aggregate(trips=ibis._.count(), highest=ibis._.fare_amount.max())
        .order_by("passenger_count")
    )
    return fares.to_pyarrow()


if __name__ == "__main__":
    session = kq.configure(SparkSession.builder).getOrCreate()
    kq.enable(session)
    print(report(session, sys.argv[1]).to_pandas())
