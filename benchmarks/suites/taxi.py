"""Six queries over taxi trips, on CSV and on Parquet, each with and without the engine's optimizer rules.

The first one, ``fares``, is the taxi query of the README.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks import taxi
from benchmarks.suites.base import Query, Suite, Table
from kquery_spark.config.engine import PREFIX

ROWS_AT_SCALE_1 = 3_000_000

STRINGS = {
    "fares": "SELECT passenger_count, MAX(fare_amount) AS max_fare FROM {t} GROUP BY passenger_count",
    "count": "SELECT count(*) AS trips FROM {t} WHERE trip_distance > 10 AND payment_type = 1",
    "zones": (
        "SELECT PULocationID, DOLocationID, count(*) AS trips, avg(total_amount) AS average FROM {t} "
        "GROUP BY PULocationID, DOLocationID ORDER BY trips DESC, PULocationID, DOLocationID LIMIT 20"
    ),
    "tips": (
        "SELECT VendorID, payment_type, sum(tip_amount) AS tips, min(tip_amount) AS least, max(tip_amount) AS most "
        "FROM {t} WHERE fare_amount > 0 GROUP BY VendorID, payment_type"
    ),
    "hours": (
        "SELECT hour(tpep_pickup_datetime) AS hour, count(*) AS trips, avg(trip_distance) AS miles FROM {t} "
        "WHERE year(tpep_pickup_datetime) = 2019 GROUP BY hour(tpep_pickup_datetime) ORDER BY hour"
    ),
    "dearest": (
        "SELECT PULocationID, total_amount, trip_distance FROM {t} WHERE total_amount / 2 > 30 AND RatecodeID = 1 "
        "ORDER BY total_amount DESC, trip_distance DESC, PULocationID LIMIT 10"
    ),
}
FORMATS = ("parquet", "csv")


def _make(root: Path, scale: float) -> tuple[Table, ...]:
    rows = max(12, round(ROWS_AT_SCALE_1 * scale))
    directory = taxi.generate(root / f"taxi-{scale:g}", rows)
    return tuple(Table(f"trips_{f}", directory / f, f, taxi.DDL if f == "csv" else None) for f in FORMATS)


def _queries() -> tuple[Query, ...]:
    from kquery_spark.optimizer import RULES

    without = {f"{PREFIX}disabledRules": ",".join(rule.__name__ for rule in RULES)}
    made = []
    for format_ in FORMATS:
        for name, text in STRINGS.items():
            sql = text.format(t=f"trips_{format_}")
            made.append(Query(f"{name}_{format_}", sql))
            made.append(
                Query(f"{name}_{format_}_unoptimized", sql, settings=without, pairs_with=f"{name}_{format_}")
            )
    return tuple(made)


TAXI = Suite("taxi", "6 queries on taxi trips, CSV and Parquet; scale 1 is 3 million trips", _make, _queries)
