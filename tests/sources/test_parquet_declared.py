"""What Parquet files declare is not what they store: the engine reads such columns as Spark does, or leaves them to it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark import kquery_plan
from kquery_spark.sources.parquet.footer import MAGIC, _at_schema, _element, as_file, read_footer
from kquery_spark.sources.parquet.thrift_compact import I32, STRUCT, Cursor, integer, listed, struct

CONVERTED_TYPE, SCALE, PRECISION = 6, 7, 8  # of SchemaElement
UINT_8, UINT_16, UINT_32, UINT_64, INT_8, INT_16 = range(11, 17)  # ConvertedType
SMALL = {"UINT_8": UINT_8, "UINT_16": UINT_16, "UINT_32": UINT_32, "INT_8": INT_8, "INT_16": INT_16}
VALUES = [1, None, 44, 127, 128, 255, 256, 300, 32_768, 65_535, 65_536, 70_000, -1, -129, -300, -70_000]


def declare(path: Path, digits: int | None = None, **declared: int) -> None:
    """Give leaves of a file, by their names, another converted type; digits: of decimals."""
    data = path.read_bytes()
    footer = read_footer(pa.BufferReader(data))
    assert footer is not None
    cursor = _at_schema(footer)
    first = _start_of_schema(footer)
    elements = []
    for _ in range(cursor.list_size()):
        _, name, fields = _element(cursor)
        if name in declared:
            kept = [f for f in fields if f[0] < CONVERTED_TYPE]
            fields = [*kept, (CONVERTED_TYPE, I32, integer(declared[name]))]
            if digits is not None:
                fields += [(SCALE, I32, integer(2)), (PRECISION, I32, integer(digits))]
        elements.append(struct(fields))
    rewritten = footer[:first] + listed(STRUCT, elements) + footer[cursor.at :]
    path.write_bytes(data[: len(data) - 8 - len(footer)] + as_file(rewritten))
    assert data[:4] == MAGIC


def _start_of_schema(footer: bytes) -> int:
    cursor = Cursor(footer)
    return next(cursor.at for field, kind, _ in cursor.fields() if field == 2 or cursor.skip(kind))


def write(path: Path, rows: pa.Table, **options: Any) -> None:
    pq.write_table(rows, path, store_schema=False, **options)


def check(frame: Any, coverage: float | None = None) -> None:
    """The engine's rows are Spark's, without a failure on the way."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", kq.FallbackWarning)
        found = frame.transform(kquery_plan, when="always").collect()
    assert sorted(map(repr, found)) == sorted(map(repr, frame.collect()))
    if coverage is not None:
        assert kq.explain(frame).coverage == coverage


def small(values: list[int | None]) -> pa.Table:
    column = pa.array(values, pa.int32())
    return pa.table(
        {"x": column, "s": pa.StructArray.from_arrays([column], ["y"]), "l": [[v] for v in values]}
    )


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"write_statistics": False}], ids=str)
@pytest.mark.parametrize("declared", SMALL)
def test_integers_that_are_larger_than_declared(
    spark: Any, tmp_path: Path, declared: str, options: dict[str, Any]
) -> None:
    rows = small(VALUES).cast(
        pa.schema([("x", pa.int32()), ("s", pa.struct([("y", pa.int32())])), ("l", pa.list_(pa.int32()))])
    )
    write(tmp_path / "t.parquet", rows, **options)
    declare(tmp_path / "t.parquet", x=SMALL[declared], y=SMALL[declared], element=SMALL[declared])
    check(spark.read.parquet(str(tmp_path)))
    check(spark.read.parquet(str(tmp_path)).where("x > 40"))
    if declared != "UINT_32":  # which Spark does not read as an int
        check(spark.read.schema("x int, s struct<y: int>").parquet(str(tmp_path)))


def test_integers_that_are_as_small_as_declared_are_read_by_the_engine(spark: Any, tmp_path: Path) -> None:
    rows = small([0, None, 127])
    write(tmp_path / "t.parquet", rows.set_column(2, "l", rows["l"].cast(pa.list_(pa.int32()))))
    declare(tmp_path / "t.parquet", x=UINT_8, y=INT_8, element=INT_16)
    check(spark.read.parquet(str(tmp_path)), coverage=1.0)


def test_small_integers_that_spark_wrote_without_statistics(spark: Any, tmp_path: Path) -> None:
    rows = spark.range(100).selectExpr(
        "CAST(id AS TINYINT) b", "CAST(id AS SMALLINT) h", "array(CAST(id AS TINYINT)) l"
    )
    rows.write.option("parquet.column.statistics.enabled", "false").parquet(str(tmp_path / "t"))
    check(spark.read.parquet(str(tmp_path / "t")), coverage=1.0)


DECIMAL = 5
DECIMALS = {
    "INT32": (pa.array([1, None, 9_999, 99_999, -10_000], pa.int32()), 4),
    "INT64": (pa.array([1, None, 10**18, -(10**18)], pa.int64()), 18),
    "short in INT64": (pa.array([1, None, 10**12], pa.int64()), 9),
    "bytes": (pa.array([v.to_bytes(4, "big") for v in (1, 9_999, 99_999)], pa.binary(4)), 4),
    "many bytes": (pa.array([v.to_bytes(16, "big") for v in (1, 10**37, 10**38)], pa.binary(16)), 38),
}


@pytest.mark.parametrize("name", DECIMALS)
def test_decimals_of_more_digits_than_declared_fall_back_to_spark(
    spark: Any, tmp_path: Path, name: str
) -> None:
    column, precision = DECIMALS[name]
    write(tmp_path / "t.parquet", pa.table({"x": column, "id": range(len(column))}))
    declare(tmp_path / "t.parquet", digits=precision, x=DECIMAL)
    frame = spark.read.parquet(str(tmp_path))
    assert frame.schema["x"].dataType.precision == precision
    for query in (frame.select("x"), frame.where("x > 0"), frame.selectExpr("sum(x)")):
        assert "outside the range of its declared type" in str(kq.explain(query))
    check(frame.select("id"), coverage=1.0)


def test_structs_none_of_whose_fields_are_in_the_file(spark: Any, tmp_path: Path) -> None:
    column = pa.array([{"a": 1}, None, {"a": None}])
    write(tmp_path / "t.parquet", pa.table({"s": column, "l": pa.array([[{"a": 1}], None, []])}))
    frame = spark.read.schema("s struct<b: int>, l array<struct<c: int>>").parquet(str(tmp_path))
    check(frame, coverage=1.0)
    name = "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing"
    spark.conf.set(name, "true")
    try:
        check(
            spark.read.schema("s struct<b: int>, l array<struct<c: int>>").parquet(str(tmp_path)),
            coverage=0.0,
        )
    finally:
        spark.conf.unset(name)
