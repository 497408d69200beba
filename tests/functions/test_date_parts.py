"""Parts of many dates, which come from a table of days, are those of each date by itself."""

from __future__ import annotations

from datetime import date, timedelta

import pyarrow as pa
import pytest

import kquery_spark as kq
from kquery_spark.functions.datetime.date_fields import _MIN_TABLE_DAYS

PARTS = ["year", "quarter", "month", "day", "dayofweek", "weekday", "dayofyear", "weekofyear"]


@pytest.mark.parametrize("first", [date(1, 1, 1), date(1968, 12, 30), date(1970, 1, 1), date(9989, 5, 5)])
def test_many_dates_have_the_parts_each_has(first: date):
    days: list[date | None] = [first + timedelta(days=(i * 7) % 3000) for i in range(4 * _MIN_TABLE_DAYS)]
    days[5] = None
    parts = ", ".join(f"{p}(d) AS {p}" for p in PARTS)
    found = kq.ExecutionContext()
    found.register_arrow("t", pa.table({"d": days}))
    whole = found.sql(f"SELECT {parts} FROM t").to_arrow()
    found.register_arrow("few", pa.table({"d": days[:3000]}))
    few = found.sql(f"SELECT {parts} FROM few").to_arrow()
    assert len(days[:3000]) < _MIN_TABLE_DAYS
    assert whole.slice(0, 3000).combine_chunks().equals(few.combine_chunks())
    for i in (0, 1, 4 * _MIN_TABLE_DAYS - 1):
        d, row = days[i], whole.slice(i, 1).to_pylist()[0]
        assert d is not None
        assert (row["year"], row["month"], row["day"], row["dayofyear"]) == (
            d.year,
            d.month,
            d.day,
            d.timetuple().tm_yday,
        )
        assert (row["weekday"], row["weekofyear"]) == (d.weekday(), d.isocalendar().week)
