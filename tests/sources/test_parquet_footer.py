"""Footers read with short decimals as integers: the values are Spark's, everything else is untouched."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kquery_spark.sources.parquet.footer import read_footer, storage_metadata, with_storage_types
from kquery_spark.sources.parquet.open_files import open_file
from kquery_spark.sources.parquet.path_source import parquet_source
from tests.sources.compare import assert_same, read_all


def column(digits: int, scale: int, rows: int = 500) -> pa.Array:
    top = 10**digits - 1
    numbers = [None if x % 9 == 0 else top - x if x % 2 else x - top for x in range(rows)]
    return pa.array(
        [n if n is None else Decimal(f"{n}E-{scale}") for n in numbers], pa.decimal128(digits, scale)
    )


def table() -> pa.Table:
    columns = {f"d{digits}": column(digits, 2) for digits in (4, 9, 10, 18, 19, 38)}
    columns["nested"] = pa.array([{"d": v, "x": i} for i, v in enumerate(columns["d18"].to_pylist())])
    columns["nested"] = columns["nested"].cast(pa.struct([("d", pa.decimal128(18, 2)), ("x", pa.int64())]))
    columns["listed"] = pa.array([[v] for v in columns["d4"].to_pylist()], pa.list_(pa.decimal128(4, 2)))
    columns["id"] = pa.array(range(500))
    return pa.table(columns)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("footer") / "f.parquet")
    pq.write_table(table(), path, row_group_size=120, store_decimal_as_integer=True)
    return path


def test_only_flat_short_decimals_become_integers(path):
    rewritten = storage_metadata(read_footer(pa.memory_map(path)), int96=True).schema.to_arrow_schema()
    before = pq.read_schema(path)
    changed = [f.name for f in before if rewritten.field(f.name).type != f.type]
    assert changed == ["d4", "d9", "d10", "d18"]
    assert [rewritten.field(n).type for n in changed] == [pa.int32(), pa.int32(), pa.int64(), pa.int64()]
    assert rewritten.names == before.names


def test_values_are_those_of_spark_and_of_arrow(spark, path):
    source = parquet_source([path])
    assert read_all(source).to_pylist() == table().to_pylist()
    assert_same(spark.read.parquet(path), source)


def test_files_that_spark_wrote(spark, path, tmp_path):
    written = str(tmp_path / "spark")
    spark.read.parquet(path).coalesce(1).write.parquet(written)
    source = parquet_source([written])
    assert "d18" in [f.name for f in open_file(source.files[0])._physical.schema.to_arrow_schema()]
    assert_same(spark.read.parquet(written), source)


def test_a_wider_decimal_of_the_table_keeps_the_value(spark, tmp_path):
    a, b = str(tmp_path / "t" / "a.parquet"), str(tmp_path / "t" / "b.parquet")
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table({"d": column(12, 4)}), a, store_decimal_as_integer=True)
    pq.write_table(pa.table({"d": column(9, 2)}), b, store_decimal_as_integer=True)
    source = parquet_source([str(tmp_path / "t")])
    assert sorted(map(str, read_all(source).column("d").to_pylist())) == sorted(
        str(v if v is None else v.quantize(Decimal("0.0001")))
        for v in [*column(12, 4).to_pylist(), *column(9, 2).to_pylist()]
    )


def test_files_without_short_decimals_keep_their_footer(tmp_path):
    path = str(tmp_path / "f.parquet")
    pq.write_table(table().select(["d19", "d38", "nested", "id"]), path)
    assert storage_metadata(read_footer(pa.memory_map(path)), int96=True) is None


def test_flat_int96_times_become_bytes(tmp_path):
    path = str(tmp_path / "f.parquet")
    times = pa.array([datetime(1960, 1, 1), None, datetime(2020, 1, 1)], pa.timestamp("us"))
    pq.write_table(
        pa.table({"t": times, "s": [{"x": 1}] * 3, "id": [1, 2, 3]}),
        path,
        use_deprecated_int96_timestamps=True,
    )
    rewritten = storage_metadata(read_footer(pa.memory_map(path)), int96=True).schema.to_arrow_schema()
    assert rewritten.field("t").type == pa.binary(12)
    assert rewritten.field("id").type == pa.int64()
    assert storage_metadata(read_footer(pa.memory_map(path)), int96=False) is None
    source = parquet_source([path])
    assert open_file(source.files[0]).read(0, ["t", "id"]).column("t").combine_chunks().equals(times)


@pytest.mark.parametrize("cut", [1, 7, 40, 200])
def test_a_footer_cut_short_is_an_error(path, cut):
    with open(path, "rb") as file:
        data = file.read()
    length = int.from_bytes(data[-8:-4], "little")
    with pytest.raises(ValueError, match="footer"):
        with_storage_types(data[-8 - length :][:cut], int96=True)
