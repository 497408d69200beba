"""Comparing two tables: what counts as equal, and that what differs is found and named."""

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from kquery_spark.verify import compare_tables

NAN = float("nan")


def table(**columns):
    return pa.table(columns)


def differ(left, right, ordered=False):
    return [str(d) for d in compare_tables(left, right, ordered)]


def test_order_of_rows_matters_only_when_asked():
    left, right = table(a=[1, 2, None], s=["x", None, "y"]), table(a=[None, 2, 1], s=["y", None, "x"])
    assert differ(left, right) == []
    (found,) = differ(left.select(["a"]), right.select(["a"]), ordered=True)
    assert "column a: 2 of 3 values differ; row 1 is 1 in Spark, None in the engine" in found


def test_only_the_columns_the_query_orders_by_are_compared_row_by_row():
    left, right = table(k=[1, 1, 2], v=["a", "b", "c"]), table(k=[1, 1, 2], v=["b", "a", "c"])
    assert differ(left, right, ordered=[0]) == []
    assert "column v" in differ(left, right, ordered=[0, 1])[0]
    swapped = table(k=[1, 2, 1], v=["a", "c", "b"])
    assert (
        "column k: 2 of 3 values differ; row 2 in the order of the query"
        in differ(left, swapped, ordered=[0])[0]
    )


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([1, 2], [1, 3]),
        ([1, None], [1, 0]),
        (["a", ""], ["a", None]),
        (["a"], ["A"]),
        ([Decimal("1.10")], [Decimal("1.11")]),
        ([datetime.date(2020, 1, 1)], [datetime.date(2020, 1, 2)]),
        ([datetime.datetime(2020, 1, 1)], [datetime.datetime(2020, 1, 1, 0, 0, 0, 1)]),
        ([1.0], [1.0 + 3e-9]),
        ([1.0], [NAN]),
        ([NAN], [None]),
        ([float("inf")], [-float("inf")]),
        ([0.0], [1e-300]),
        ([b"x"], [b"y"]),
        ([True, False], [True, True]),
        ([[1, 2]], [[2, 1]]),
        ([[1.0]], [[1.001]]),
        ([{"a": 1}], [{"a": None}]),
    ],
)
def test_a_different_value_is_found(left, right):
    (found,) = differ(table(v=pa.array(left)), table(v=pa.array(right, pa.array(left).type)))
    assert found.startswith("column v: ")


def test_a_row_that_comes_a_different_number_of_times_is_found():
    assert differ(table(a=[1, 1, 2]), table(a=[1, 2, 2]))
    assert differ(table(a=[1, 1, 2], b=[NAN, NAN, 0.5]), table(a=[1, 2, 2], b=[NAN, 0.5, NAN]))


def test_values_that_belong_to_another_row_are_found():
    assert differ(table(k=["a", "b"], v=[1, 2]), table(k=["a", "b"], v=[2, 1]))
    assert differ(table(k=[1.5, 2.5], v=[1, 2]), table(k=[1.5, 2.5], v=[2, 1]))


def test_floats_within_the_tolerance_are_equal():
    assert (
        differ(table(v=[1e300, 1.0, NAN, -0.0]), table(v=[0.0, NAN, 1.0 + 5e-10, 1e300 * (1 + 5e-10)])) == []
    )
    assert differ(table(v=[[1.0, NAN], [None]]), table(v=[[None], [1.0 + 1e-12, NAN]])) == []


@pytest.mark.parametrize("seed", range(5))
def test_noise_in_the_last_digits_never_moves_rows_apart(seed):
    random = np.random.default_rng(seed)
    # few values of one column per value of the other, of all magnitudes, many on the edge of rounding
    x = random.choice([1.5, 1e-9, 3e9, 0.1, 2.0**24 + 0.5], 2000) * random.choice([1.0, 1.0 + 1e-7], 2000)
    y = random.integers(0, 50, 2000) / 3
    noise = 1 + random.uniform(-5e-13, 5e-13, (2, 2000))
    order = random.permutation(2000)
    left, right = table(x=x, y=y), table(x=(x * noise[0])[order], y=(y * noise[1])[order])
    assert differ(left, right) == []
    wrong = (x * noise[0])[order]
    wrong[7] *= 1.01
    assert differ(left, table(x=wrong, y=right["y"]))


def test_schemas_are_compared():
    assert "Spark's columns are ['a'], the engine's ['b']" in differ(table(a=[1]), table(b=[1]))[0]
    narrow = table(a=pa.array([1], pa.int32()))
    assert differ(table(a=[1]), narrow) == ["column a is bigint in Spark, int in the engine"]
    strict = pa.table({"a": [1]}, pa.schema([pa.field("a", pa.int64(), False)]))
    assert differ(table(a=[1]), strict) == ["column a is nullable in Spark, not nullable in the engine"]


def test_row_counts_are_compared():
    assert differ(table(a=[1]), table(a=[1, 1])) == ["Spark returns 1 rows, the engine 2"]
    assert differ(table(a=[1])[:0], table(a=[1])[:0]) == []


def test_dates_and_times_that_python_has_no_value_for_are_compared():
    def table(day):
        dates = pa.array([day, None], pa.int32()).cast(pa.date32())
        times = pa.array([[day * 86_400_000_000], None], pa.list_(pa.timestamp("us", tz="UTC")))
        return pa.table({"d": dates, "s": pa.StructArray.from_arrays([dates, times], ["d", "t"])})

    assert differ(table(-900_000), table(-900_000)) == []
    assert len(differ(table(-900_000), table(-900_001))) == 2
