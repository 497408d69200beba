"""How many groups an aggregation is expected to make."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.optimizer import optimize
from kquery_spark.optimizer.statistics import Estimator


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> kq.ExecutionContext:
    rows = 20_000
    file: Path = tmp_path_factory.mktemp("estimates") / "t.parquet"
    days = [date(1992, 1, 1) + timedelta(days=i % 2500) for i in range(rows)]
    instants = [datetime(2001, 1, 1) + timedelta(hours=i) for i in range(rows)]
    columns = {"id": range(rows), "k": [i % 7 for i in range(rows)], "d": days, "at": instants}
    pq.write_table(pa.table(columns), file, row_group_size=5000)
    found = kq.ExecutionContext()
    found.register_parquet("t", str(file))
    return found


@pytest.mark.parametrize(
    "keys, least, most",
    [
        ("k", 7, 10),
        ("year(d)", 7, 30),
        ("year(at)", 3, 30),
        ("month(d)", 12, 13),
        ("k, hour(at)", 7 * 24, 10 * 25),
        ("CASE WHEN k > 3 THEN k ELSE 0 END", 7, 10),
        ("id", 20_000, 20_000),
        ("concat(k, d)", 7 * 2500, 20_000),
    ],
)
def test_groups_are_bounded_by_what_footers_say_of_the_keys_columns(
    context: kq.ExecutionContext, keys: str, least: float, most: float
):
    plan = context.sql(f"SELECT count(*) AS n FROM t GROUP BY {keys}").plan
    assert least <= Estimator().estimate(optimize(plan)).rows <= most


def test_keys_of_one_table_make_no_more_groups_than_it_has_rows(tmp_path: Path):
    """Names and prices of 100 things, sold 50,000 times, are 100 groups and not one for two sales."""
    found = kq.ExecutionContext()
    things = {
        "id": range(100),
        "name": [f"thing {i}" for i in range(100)],
        "price": [i / 7 for i in range(100)],
    }
    for name, columns in (("things", things), ("sales", {"sold": [i % 100 for i in range(50_000)]})):
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
        found.register_parquet(name, str(tmp_path / f"{name}.parquet"))
    sql = "SELECT name, price, count(*) AS n FROM sales JOIN things ON sold = id GROUP BY name, price"
    assert Estimator().estimate(optimize(found.sql(sql).plan)).rows <= 101


def test_different_counts_are_few(context: kq.ExecutionContext):
    """20,000 rows are counted by key: at most 200 counts differ, as 1 + 2 + ... + 200 is more than that."""
    counts = "SELECT id, count(*) AS c FROM t GROUP BY id"
    plan = context.sql(f"SELECT c, count(*) AS n FROM ({counts}) AS x GROUP BY c").plan
    assert Estimator().estimate(optimize(plan)).rows <= 210


def test_days_without_sales_have_no_pairs(tmp_path: Path):
    """A calendar of 200 years, sales in five of them: a month of the calendar is a sixtieth of the sales, not all."""
    found = kq.ExecutionContext()
    calendar = {"day": range(73_000), "month": [i // 30 for i in range(73_000)]}
    sales = {"sold": [36_000 + i % 1_800 for i in range(90_000)], "price": range(90_000)}
    for name, columns in (("calendar", calendar), ("sales", sales)):
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
        found.register_parquet(name, str(tmp_path / f"{name}.parquet"))
    plan = optimize(found.sql("SELECT price FROM sales JOIN calendar ON sold = day").plan)
    assert 80_000 < Estimator().estimate(plan).rows < 100_000
    plan = optimize(found.sql("SELECT price FROM sales JOIN calendar ON sold = day WHERE month = 1201").plan)
    share = Estimator().estimate(plan).rows / 90_000
    assert 0.03 < share < 0.07  # one in twenty is what an equation is taken to keep
