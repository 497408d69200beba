"""Wrong statistics that old releases of Parquet's Java library wrote do not exclude rows."""

from __future__ import annotations

import struct
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kquery_spark.expr import Call, Column, Literal
from kquery_spark.logical.pruning import prune
from kquery_spark.sources.parquet.path_source import parquet_source
from kquery_spark.types import names as t
from kquery_spark.verify import verify
from tests.sources.test_parquet_pages import set_writer


def replace_in_footer(path: Path, old: bytes, new: bytes) -> None:
    """Replace bytes everywhere in a file's footer, which must contain them."""
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    assert len(old) == len(new) and old in data[start:]
    path.write_bytes(data[:start] + data[start:].replace(old, new))


@pytest.mark.parametrize(("dtype", "form"), [(t.DOUBLE, "<d"), (t.FLOAT, "<f")], ids=str)
@pytest.mark.parametrize("bounds", [(1.0,), (1.0, 2.0)], ids=["minimum", "both"])
def test_nan_is_not_a_bound(spark, tmp_path, dtype, form, bounds):
    """parquet-mr before 1.10 writes NaN as minimum and maximum if the first value of a row group is NaN."""
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"x": pa.array([float("nan"), 1.0, 2.0], dtype)}), path)
    for bound in bounds:
        replace_in_footer(path, struct.pack(form, bound), struct.pack(form, float("nan")))
    set_writer(path, "parquet-mr version 1.8.3")
    source = parquet_source([str(path)])
    assert str(source.ranges(source.splits()[0], "x").low) == "nan"
    frame = spark.read.parquet(str(path))
    for op in ("lt", "lteq", "eq", "gt", "gteq"):
        assert len(prune(source, [Call.of(op, Column("x", dtype), Literal(2.0, dtype))])) == 1
    for condition in ("x < 5", "x <= 1", "x = 2", "x > 1", "x IN (1, 7)"):
        assert verify(frame.where(condition)).ok


DECIMALS = [Decimal("3.84"), Decimal("2.57"), Decimal("5.17")]  # the bytes 01 80, 01 01, 02 05


@pytest.mark.parametrize(
    ("writer", "is_ordered"),
    [
        ("parquet-mr version 1.8.2", False),
        ("parquet-mr version 1.9.0", False),
        ("", False),
        ("parquet-mr version 1.10.0", True),
        ("parquet-mr version 1.17.1", True),
        ("DuckDB", True),
    ],
)
def test_decimals_compared_as_signed_bytes(tmp_path, writer, is_ordered):
    """parquet-mr before 1.10 orders 01 80 before 01 01. Spark ignores its statistics of decimals."""
    path = tmp_path / "f.parquet"
    dtype = pa.decimal128(20, 2)
    pq.write_table(pa.table({"d": pa.array(DECIMALS, dtype)}), path, use_dictionary=False)
    set_writer(path, writer)
    replace_in_footer(path, b"\x01\x01", b"\x01\x80")
    source = parquet_source([str(path)])
    (split,) = source.splits()
    assert (source.ranges(split, "d").low == Decimal("3.84")) == is_ordered
    assert source.ranges(split, "d").nulls == 0
    condition = Call.of("eq", Column("d", dtype), Literal(Decimal("2.57"), dtype))
    assert len(prune(source, [condition])) == (0 if is_ordered else 1)


def test_equal_bounds_of_decimals_are_exact_in_any_order(tmp_path):
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"d": pa.array([DECIMALS[0]] * 3, pa.decimal128(20, 2))}), path)
    set_writer(path, "parquet-mr version 1.8.2")
    source = parquet_source([str(path)])
    actual = source.ranges(source.splits()[0], "d")
    assert actual.low == actual.high == DECIMALS[0]
