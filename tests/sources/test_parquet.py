"""Parquet files come out as Spark reads them; damage and change are noticed."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kquery_spark.errors import SourceError
from kquery_spark.sources import listing
from kquery_spark.sources.parquet.path_source import parquet_source
from tests.conftest import SPARK_BEFORE_4_3
from tests.sources.compare import assert_same, read_all


def table(start: int = 0, rows: int = 1000) -> pa.Table:
    ids = list(range(start, start + rows))
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "i": pa.array([None if x % 7 == 0 else x % 50 for x in ids], pa.int32()),
            "s": pa.array([None if x % 11 == 0 else f"v{x % 3}" for x in ids]),
            "u": pa.array([f"unique {x}" for x in ids]),
            "d": pa.array([x / 3 for x in ids]),
            "dec": pa.array(range(start, start + rows), pa.int64())
            .cast(pa.decimal128(19, 0))
            .cast(pa.decimal128(25, 2)),
            "day": pa.array([x % 1000 for x in ids], pa.int32()).cast(pa.date32()),
            "at": pa.array([x * 1_000_000 for x in ids], pa.timestamp("us", tz="UTC")),
            "wall": pa.array([x * 1_000_000 for x in ids], pa.timestamp("us")),
            "xs": pa.array([[x, None] for x in ids]),
            "st": pa.array([{"a": x, "b": str(x)} for x in ids]),
        }
    )


def test_row_groups_are_read_exactly_once(spark, tmp_path):
    path = tmp_path / "f.parquet"
    pq.write_table(table(), path, row_group_size=99)
    source = parquet_source([str(path)])
    assert len(source.splits()) == 11
    df = spark.read.parquet(str(path))
    assert_same(df, source)
    assert_same(df, source, ["s", "id"])
    assert sum(b.num_rows for s in source.splits() for b in source.read(s, [])) == source.row_count() == 1000
    merged = source.splits()[0].__class__(0, tuple(range(11)), 1000, 0)
    assert sum(b.num_rows for b in source.read(merged, ["id"])) == 1000


@pytest.mark.parametrize(
    "options",
    [
        {"use_dictionary": False},
        {"use_dictionary": ["s"], "dictionary_pagesize_limit": 64},
        {"compression": "zstd", "data_page_version": "2.0"},
        {"compression": "none", "write_statistics": False},
        {"column_encoding": {"id": "DELTA_BINARY_PACKED"}, "use_dictionary": False},
        pytest.param(
            {"use_byte_stream_split": ["d"], "use_dictionary": False},
            marks=pytest.mark.skipif(SPARK_BEFORE_4_3, reason="Spark 4.2 cannot read it"),
        ),
    ],
    ids=str,
)
def test_encodings(spark, tmp_path, options):
    path = tmp_path / "f.parquet"
    pq.write_table(table(), path, row_group_size=300, **options)
    assert_same(spark.read.parquet(str(path)), parquet_source([str(path)]))


def test_int96_timestamps(spark, tmp_path):
    path = tmp_path / "f.parquet"
    times = pa.array(
        [0, 1_548_979_199_123_456, -1, None, 4_102_444_800_000_000], pa.timestamp("us", tz="UTC")
    )
    pq.write_table(pa.table({"at": times}), path, use_deprecated_int96_timestamps=True)
    assert_same(spark.read.parquet(str(path)), parquet_source([str(path)]))


def test_other_column_orders_missing_columns_and_narrower_ints(spark, tmp_path):
    pq.write_table(pa.table({"a": pa.array([1, 2], pa.int64()), "b": ["x", "y"]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"b": ["z"], "a": pa.array([3], pa.int32())}), tmp_path / "b.parquet")
    pq.write_table(pa.table({"b": ["w"]}), tmp_path / "c.parquet")
    source = parquet_source([str(tmp_path)])
    assert_same(spark.read.schema("a bigint, b string").parquet(str(tmp_path)), source)


def test_a_type_that_does_not_fit_is_an_error(tmp_path):
    pq.write_table(pa.table({"a": pa.array([1], pa.int32())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "b.parquet")
    with pytest.raises(SourceError, match=r"b\.parquet: column a is string"):
        read_all(parquet_source([str(tmp_path)]))


def test_columns_that_differ_in_case_only_are_an_error(tmp_path):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"A": [2]}), tmp_path / "b.parquet")
    with pytest.raises(SourceError, match="only in case"):
        read_all(parquet_source([str(tmp_path)]))


@pytest.mark.parametrize(
    "values",
    [["1", "2"], ["1", "3000000000"], ["1", "x"], ["1.5", "2"], ["2019-01-01", "2019-01-02"], ["2019-01-01", "x"],
     ["01", "1"], ["a b", "c%2Fd"], ["__HIVE_DEFAULT_PARTITION__", "7"], ["99999999999999999999", "1"], ["-5", "+5"],
     ["2019-01-01 00%3A00%3A00", "2019-01-01 10%3A00%3A00"], ["3000000000", "1.5"], ["2019-02-30", "2019-01-01"]],
    ids=str,
)  # fmt: skip
def test_types_of_partition_columns(spark, tmp_path, values):
    for i, value in enumerate(values):
        directory = tmp_path / f"p={value}"
        directory.mkdir()
        pq.write_table(pa.table({"x": [i]}), directory / "f.parquet")
    assert_same(spark.read.parquet(str(tmp_path)), parquet_source([str(tmp_path)]))


def test_a_column_in_files_and_paths(spark, tmp_path):
    (tmp_path / "p=7").mkdir()
    pq.write_table(pa.table({"p": ["in the file"], "x": [1]}), tmp_path / "p=7" / "f.parquet")
    assert_same(spark.read.parquet(str(tmp_path)), parquet_source([str(tmp_path)]))


def test_globs_directories_and_hidden_files(spark, tmp_path):
    for name in ("a1", "a2", "b1", "a1/sub"):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"x": [name]}), tmp_path / name / "f.parquet")
    (tmp_path / "a1" / "_SUCCESS").write_text("")
    (tmp_path / "a1" / ".hidden").write_text("x")
    for paths in (
        [f"{tmp_path}/a*"],
        [f"{tmp_path}/a1"],
        [f"{tmp_path}/a1", f"{tmp_path}/b1/f.parquet"],
        [f"{tmp_path}/?1/*.parquet"],
    ):
        assert_same(spark.read.parquet(*paths), parquet_source(paths))
    with pytest.raises(SourceError, match="no such file"):
        parquet_source([f"{tmp_path}/nothing*"])


def test_damaged_files(tmp_path):
    path = tmp_path / "f.parquet"
    pq.write_table(table(), path, row_group_size=500, compression="none")
    data = bytearray(path.read_bytes())
    path.write_bytes(data[:-30])
    with pytest.raises(SourceError, match=r"f\.parquet as Parquet"):
        parquet_source([str(path)])
    metadata = pq.ParquetFile(pa.BufferReader(bytes(data))).metadata
    chunk = metadata.row_group(1).column(0)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    data[start : start + 24] = b"\xff" * 24
    path.write_bytes(data)
    source = parquet_source([str(path)])
    assert next(source.read(source.splits()[0], ["id"])).num_rows == 500
    with pytest.raises(SourceError, match=r"row group 1 of .*f\.parquet"):
        list(source.read(source.splits()[1], ["id"]))


def test_changed_files(tmp_path):
    path = tmp_path / "f.parquet"
    pq.write_table(table(), path)
    source = parquet_source([str(path)])
    split = source.splits()[0]
    pq.write_table(table(5, 700), path)
    with pytest.raises(SourceError, match="has changed"):
        list(source.read(split, ["id"]))


def test_a_change_is_noticed_when_statistics_are_first_asked_for(tmp_path):
    path = tmp_path / "f.parquet"
    pq.write_table(table(), path)
    source = parquet_source([str(path)])
    split = source.splits()[0]
    assert source.ranges(split, "id").high == 999
    pq.write_table(table(5, 700), path)
    with pytest.raises(SourceError, match="has changed"):
        source.ranges(split, "day")
    with pytest.raises(SourceError, match="has changed"):
        source.column_bytes(["day"])


def test_a_filesystem_by_uri(tmp_path):
    for i in (1, 2):
        (tmp_path / f"p={i}").mkdir()
        pq.write_table(pa.table({"x": [i * 10]}), tmp_path / f"p={i}" / "f.parquet")
    found = listing._list_remote(f"file://{tmp_path}")
    assert [relative for _, relative in found] == ["p=1/f.parquet", "p=2/f.parquet"]
    assert [f.path for f, _ in listing._list_remote(f"file://{tmp_path}/p=*/f.parquet")] == [
        f.path for f, _ in found
    ]
    assert parquet_source([f.path for f, _ in found]).row_count() == 2
