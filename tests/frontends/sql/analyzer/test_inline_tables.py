"""VALUES of all dates that Spark has."""

from __future__ import annotations

import pytest

import kquery_spark as kq
from kquery_spark.errors import SqlError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("DATE '+12345-01-31'", "+12345-01-31"),
        ("TIMESTAMP_NTZ '+290000-01-01 00:00:01'", "+290000-01-01 00:00:01"),
        ("DATE '-0044-03-15'", "-0044-03-15"),
    ],
)
def test_values_have_dates_beyond_the_calendar_of_python(value, text):
    context = kq.ExecutionContext()
    sql = f"SELECT CAST(a AS string) AS a FROM VALUES ({value}), (NULL) AS t(a)"
    assert context.sql(sql).to_arrow().to_pydict() == {"a": [text, None]}
    # equal rows are equal plans
    assert context.sql(sql).plan == context.sql(sql).plan
    assert context.sql(sql).plan != context.sql(sql.replace("(NULL)", "(NULL), (NULL)")).plan


def test_arrays_of_such_dates_are_declined_in_values():
    with pytest.raises(
        SqlError, match="a constant array<date> with a date or time outside of the years 1 to 9999"
    ):
        kq.ExecutionContext().sql("SELECT * FROM VALUES (array(DATE '+12345-01-31')) AS t(a)")
