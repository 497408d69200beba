"""Polars, DuckDB and pandas read a query that runs in this process, without Spark or a JVM, and a query reads Polars.

    pip install kquery-spark polars duckdb
    python examples/arrow_readers.py data/trips

A DataFrame of ``ExecutionContext`` is an Arrow stream (``__arrow_c_stream__``): libraries get its batches as the engine
produces them. ``register_arrow`` takes such streams.
"""

from __future__ import annotations

import sys

import duckdb
import polars

import kquery_spark as kq

FARES = """
SELECT passenger_count, count(*) AS trips, max(fare_amount) AS highest
FROM trips
WHERE fare_amount > 0
GROUP BY passenger_count
"""


def readers(path: str) -> dict[str, list[tuple[int | None, int, float]]]:
    """The rows of the same query in each library, in the order of ``passenger_count``."""
    context = kq.ExecutionContext()
    context.register_parquet("trips", path)
    fares = context.sql(FARES)

    in_polars = polars.DataFrame(fares).sort("passenger_count", nulls_last=False)
    in_duckdb = duckdb.from_arrow(fares).order("passenger_count NULLS FIRST")
    in_pandas = fares.to_pandas().sort_values("passenger_count", na_position="first")

    context.register_arrow("from_polars", in_polars)
    again = context.sql("SELECT * FROM from_polars ORDER BY passenger_count").collect()
    return {
        "Polars": in_polars.rows(),
        "DuckDB": in_duckdb.fetchall(),
        "pandas": [tuple(row) for row in in_pandas.to_numpy().tolist()],
        "and back": [tuple(row.values()) for row in again],
    }


if __name__ == "__main__":
    for library, rows in readers(sys.argv[1]).items():
        print(library, rows[:3])
