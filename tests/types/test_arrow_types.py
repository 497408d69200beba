"""Arrow columns of any type are converted to Spark's types, or are declined when their table is registered."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from kquery_spark import ExecutionContext
from kquery_spark.errors import SourceError, Unsupported
from kquery_spark.types.arrow_types import spark_type

NUMBERS = [Decimal(i) / 100 for i in range(-3, 5)]
DECIMALS = [pa.decimal128(9, 2), pa.decimal256(9, 2), pa.decimal256(38, 2)]
if hasattr(pa, "decimal64"):  # since pyarrow 19
    DECIMALS += [pa.decimal32(9, 2), pa.decimal64(9, 2), pa.decimal64(18, 2)]


@pytest.mark.parametrize("dtype", DECIMALS, ids=str)
def test_decimals_of_any_width(dtype: Any) -> None:
    decimals = pa.array([*NUMBERS, None], pa.decimal128(dtype.precision, 2)).cast(dtype)
    lists = pa.ListArray.from_arrays(list(range(len(decimals) + 1)), decimals)
    structs = pa.StructArray.from_arrays([decimals], ["x"])
    context = ExecutionContext()
    context.register_arrow("t", pa.table({"d": decimals, "l": lists, "s": structs}))
    result = context.sql("SELECT d, l, s, d + 1 AS e FROM t").to_arrow()
    assert result.schema.field("d").type == spark_type(dtype) == pa.decimal128(dtype.precision, 2)
    assert result["d"].to_pylist() == [*NUMBERS, None]
    assert result["l"].to_pylist() == [[d] for d in [*NUMBERS, None]]
    assert result["s"].to_pylist() == [{"x": d} for d in [*NUMBERS, None]]
    assert result["e"].to_pylist() == [*(d + 1 for d in NUMBERS), None]


def test_decimals_with_more_digits_than_spark_supports() -> None:
    for dtype in (pa.decimal256(39, 2), pa.list_(pa.decimal256(50, 2))):
        with pytest.raises(Unsupported, match="are not supported"):
            spark_type(dtype)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1], pa.duration("ns")),
        pa.array([[1]], pa.list_(pa.timestamp("ns"))),
        pa.array([{"x": 1}], pa.struct([("x", pa.timestamp("ns", "UTC"))])),
        pa.array([2**60], pa.duration("s")),
    ],
    ids=lambda column: str(column.type),
)
def test_times_that_spark_cannot_store(column: Any) -> None:
    with pytest.raises(SourceError, match=r"column c has values that Spark's .* cannot store"):
        ExecutionContext().register_arrow("t", pa.table({"c": column}))


def test_nanoseconds_that_are_whole_microseconds() -> None:
    context = ExecutionContext()
    times = pa.array([[5000], None], pa.list_(pa.timestamp("ns")))
    context.register_arrow("t", pa.table({"i": pa.array([1000, None], pa.duration("ns")), "l": times}))
    result = context.sql("SELECT i, l FROM t").to_arrow()
    assert result["i"].to_pylist() == [dt.timedelta(microseconds=1), None]
    assert result["l"].to_pylist() == [[dt.datetime(1970, 1, 1, 0, 0, 0, 5)], None]
