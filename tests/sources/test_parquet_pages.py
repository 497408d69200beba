"""Selected rows are read from the pages of a row group that contain them, and equal the rows of the whole row group."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kquery_spark as kq
from kquery_spark.errors import SourceError, Unsupported
from kquery_spark.expr import Call, Column, Literal
from kquery_spark.logical.pruning import possible_rows
from kquery_spark.sources.base import Split
from kquery_spark.sources.parquet.open_files import open_file
from kquery_spark.sources.parquet.page_index import pages_from_offset_index
from kquery_spark.sources.parquet.pages import page_locations
from kquery_spark.sources.parquet.path_source import parquet_source
from kquery_spark.sources.parquet.source import ParquetSource
from kquery_spark.sources.parquet.stored_chunks import range_of
from kquery_spark.sources.parquet.thrift_compact import I32, I64, LIST, STRUCT, integer, listed, struct
from kquery_spark.sources.prefetch.byte_ranges import ByteRange
from kquery_spark.types import names as t
from kquery_spark.types.batch import Batch, pick
from kquery_spark.types.vector import Int64s
from kquery_spark.verify import verify

ROWS = 6000


pytestmark = pytest.mark.usefixtures("pages_of_small_chunks")


def table() -> pa.Table:
    rng = np.random.default_rng(7)
    null = rng.random(ROWS) < 0.1
    cents = rng.integers(-(10**8), 10**8, ROWS)

    def some(values: Any, dtype: pa.DataType | None = None) -> pa.Array:
        return pa.array(values, dtype, mask=null)

    return pa.table(
        {
            "id": pa.array(np.arange(ROWS)),
            "i": some(rng.integers(-100, 100, ROWS).astype(np.int32)),
            "h": some(rng.integers(-9, 9, ROWS).astype(np.int16)),
            "u": pa.array(rng.integers(0, 2**32, ROWS).astype(np.uint32)),
            "d": some(np.where(rng.random(ROWS) < 0.01, np.nan, rng.random(ROWS))),
            "f": some(rng.random(ROWS).astype(np.float32)),
            "s": pa.array(
                [None if n else f"text {x}" for n, x in zip(null, rng.integers(0, 900, ROWS), strict=True)]
            ),
            "few": pa.array([f"é{x}" for x in rng.integers(0, 4, ROWS)]),
            "b": some(rng.random(ROWS) < 0.5),
            "day": some(rng.integers(-5000, 20000, ROWS).astype("datetime64[D]")),
            "ts": pa.array(rng.integers(-(10**15), 10**15, ROWS)).cast(pa.timestamp("us", "UTC")),
            "ntz": pa.array(rng.integers(0, 10**12, ROWS)).cast(pa.timestamp("ms")),
            "m9": pa.array([Decimal(int(x)).scaleb(-2) for x in cents], pa.decimal128(9, 2)),
            "m18": pa.array([Decimal(int(x)).scaleb(-3) for x in cents], pa.decimal128(18, 3)),
            "m30": pa.array([Decimal(int(x)) for x in cents], pa.decimal128(30, 0)),
            "bytes": pa.array([bytes([x % 256]) for x in range(ROWS)]),
            "view": pa.array([f"view {x % 70}" for x in range(ROWS)], pa.string_view()),
            "large": pa.array([f"large {x % 70}" for x in range(ROWS)], pa.large_string()),
            "listed": pa.array([[x, x + 1] for x in range(ROWS)]),
            "nested": pa.array([{"a": x, "id": None if x % 3 else x} for x in range(ROWS)]),
            "nothing": pa.array([None] * ROWS, pa.int32()),
            "a.b": pa.array(np.arange(ROWS)),
        }
    )


def clustered() -> pa.Table:
    """Return a table whose columns all ascend; one has NULLs."""
    numbers = np.arange(ROWS)
    return pa.table(
        {
            "id": pa.array(numbers),
            "day": pa.array(numbers.astype(np.int32)).cast(pa.date32()),
            "s": pa.array([f"{n:05d}é" if n % 1000 else None for n in numbers]),
            "m9": pa.array([Decimal(int(n)).scaleb(-2) for n in numbers], pa.decimal128(9, 2)),
            "ts": pa.array(numbers * 1_000_000).cast(pa.timestamp("us", "UTC")),
        }
    )


def write(path: Path, rows: pa.Table, **options: Any) -> ParquetSource:
    given = {
        "data_page_size": 1000,
        "write_batch_size": 100,
        "write_page_index": True,
        "row_group_size": 4000,
    }
    pq.write_table(rows, str(path), **{**given, **options})
    return parquet_source([str(path)])


def paged(source: ParquetSource, split: Split, rows: Int64s) -> set[str]:
    """The columns whose pages are read."""
    opened = open_file(source.files[0])
    return {c for c in source.schema.names if opened.pages.with_rows(split.pieces[0], c, rows) is not None}


def same(actual: Batch, expected: Batch) -> bool:
    """Whether all columns are equal, NaN to NaN."""
    if actual.schema != expected.schema or actual.num_rows != expected.num_rows:
        return False
    pairs = zip(actual.to_arrow().columns, expected.to_arrow().columns, strict=True)
    return all(
        a.equals(b) or (t.is_fractional(a.type) and repr(a.to_pylist()) == repr(b.to_pylist()))
        for a, b in pairs
    )


CODECS = ["none", "snappy", "zstd", "gzip", "lz4"]
SOME_ROWS = [
    [5],
    [0, 1, 2],
    [-1],
    [*range(100, 300)],
    [*range(0, 1900, 600)],
    [*range(0, 1900, 3)],
    [*range(1900)],
]
# every pair of settings of a codec, the version of pages, dictionaries and what pyarrow stores of its own
WRITERS = [
    (codec, version, dictionaries, (version == "2.0") == dictionaries != (codec in ("zstd", "lz4")))
    for codec, version, dictionaries in product(CODECS, ["1.0", "2.0"], [True, False])
]


@pytest.mark.parametrize(("codec", "version", "dictionaries", "store"), WRITERS)
def test_some_rows_are_those_of_the_whole(tmp_path, codec, version, dictionaries, store):
    source = write(
        tmp_path / "f.parquet",
        table(),
        compression=codec,
        data_page_version=version,
        use_dictionary=dictionaries,
        store_schema=store,
        store_decimal_as_integer=store,
    )
    columns = source.schema.names
    for split in source.splits():
        (whole,) = source.read(split, columns)
        for numbers in SOME_ROWS:
            rows = np.array(numbers) if numbers != [-1] else np.array([split.rows - 1])
            actual, expected = source.read_rows(split, columns, rows), pick(whole, rows)
            assert same(actual, expected), numbers
    check_places(source)
    flat = set(columns) - {"listed", "nested"}
    if not dictionaries:  # a chunk of a dictionary alone is one page
        assert paged(source, source.splits()[0], np.array([5])) >= flat - {"b", "nothing"}


def check_places(source: ParquetSource) -> None:
    """The pages of all chunks are where the headers and the page index say, which agree."""
    opened = open_file(source.files[0])
    index, compared = opened.pages._index, 0
    for split, (column, leaf) in product(source.splits(), opened._flat.items()):
        (group,) = split.pieces
        headers = opened.pages.headers(group, column)
        chunk = opened.metadata.row_group(group).column(leaf)
        actual = index.pages(group, leaf, range_of(chunk), split.rows)
        if headers is None:
            continue
        expected = page_locations(*headers, split.rows)
        assert actual is not None
        assert expected is not None
        assert actual.dictionary == expected.dictionary
        assert actual.offsets.tolist() == expected.offsets.tolist()
        assert actual.sizes.tolist() == expected.sizes.tolist()
        assert actual.starts.tolist() == expected.starts.tolist()
        compared += 1
    assert compared or "LZ4" in chunk.compression


PAGE = [(1, I64, integer(104)), (2, I32, integer(50)), (3, I64, integer(0))]


@pytest.mark.parametrize(
    ("second", "is_good"),
    [
        ((154, 46, 10), True),
        ((160, 40, 10), True),
        ((154, 47, 10), False),  # beyond the chunk
        ((153, 46, 10), False),  # in the first page
        ((154, 46, 0), False),
        ((154, 46, 20), False),
        ((154, 46, 25), False),
        ((154, -46, 10), False),
        ((154, 0, 10), False),
        ((1 << 62, 1 << 30, 10), False),
    ],
)
def test_an_index_that_does_not_fit_is_not_used(second, is_good):
    kinds = zip((1, 2, 3), (I64, I32, I64), map(integer, second), strict=True)
    index = struct([(1, LIST, listed(STRUCT, [struct(PAGE), struct(list(kinds))]))])
    pages = pages_from_offset_index(index, ByteRange(100, 100), 20)
    assert (pages is not None) == is_good
    if pages is not None:
        assert pages.dictionary == (100, 4)
        assert pages.starts.tolist() == [0, 10, 20]
    with pytest.raises(ValueError, match="ends in the middle"):
        pages_from_offset_index(index[:-3], ByteRange(100, 100), 20)
    assert pages_from_offset_index(struct([]), ByteRange(100, 100), 20) is None
    late = struct([(1, LIST, listed(STRUCT, [struct(PAGE)]))])
    assert pages_from_offset_index(late, ByteRange(105, 100), 20) is None


def test_files_of_spark(spark, tmp_path):
    path = str(tmp_path / "spark")
    write(tmp_path / "f.parquet", table().drop_columns(["u", "ntz", "a.b"]))
    frame = spark.read.parquet(str(tmp_path / "f.parquet")).coalesce(1).sortWithinPartitions("id")
    # pages of at most 700 rows, which end elsewhere in columns of other widths
    frame.write.option("parquet.page.size.row.count.limit", 700).option("parquet.page.size", 2000).parquet(
        path
    )
    source = parquet_source([path])
    (split,) = source.splits()
    (whole,) = source.read(split, source.schema.names)
    for rows in (np.array([17]), np.arange(2500, 2600), np.array([0, ROWS - 1])):
        actual = source.read_rows(split, source.schema.names, rows)
        assert same(actual, pick(whole, rows))
    assert paged(source, split, np.array([17])) >= {"id", "d", "m18", "s", "day", "ts"}
    check_places(source)
    condition = Call.of("eq", Column("id", t.LONG), Literal(3456, t.LONG))
    rows = possible_rows(source, split, [condition])
    assert rows is not None and 3456 in rows and len(rows) <= 700
    ours = spark.read.parquet(path)
    for text in (
        "id = 3456",
        "id BETWEEN 600 AND 720",
        "id IN (5, 5999) AND s IS NOT NULL",
        "id < 40 OR id > 5980",
    ):
        assert verify(ours.where(text)).ok


def test_a_damaged_page_is_an_error_that_names_the_row_group(tmp_path):
    path = tmp_path / "f.parquet"
    source = write(path, clustered(), use_dictionary=False, compression="zstd")
    chunk = pq.read_metadata(path).row_group(0).column(0)
    data = bytearray(path.read_bytes())
    middle = chunk.data_page_offset + 60
    data[middle : middle + 30] = b"\xff" * 30
    path.write_bytes(data)
    source = parquet_source([str(path)])
    split = source.splits()[0]
    with pytest.raises(SourceError, match=r"row group 0 of .*f\.parquet"):
        source.read_rows(split, ["id"], np.array([3]))
    # other pages are not looked at
    assert source.read_rows(split, ["id"], np.array([3900])).columns[0].to_pylist() == [3900]


def set_writer(path: Path, writer: str) -> None:
    """Replace the name of the writer in a file's footer, and the length of the footer."""
    created_by = pq.read_metadata(path).created_by.encode()
    data = path.read_bytes()
    assert data.count(created_by) == 1
    at = data.index(created_by)
    assert data[at - 1] == len(created_by)
    changed = data[: at - 1] + bytes([len(writer)]) + writer.encode() + data[at + len(created_by) : -8]
    footer_bytes = int.from_bytes(data[-8:-4], "little") - len(created_by) + len(writer)
    path.write_bytes(changed + footer_bytes.to_bytes(4, "little") + b"PAR1")
    assert (pq.read_metadata(path).created_by or "") == writer


@pytest.mark.parametrize(
    ("writer", "may_be_dependent"),
    [
        ("parquet-mr version 1.7.0", True),
        ("parquet-mr version 1.5.0-cdh5", True),
        ("parquet-mr", True),
        ("", True),
        ("parquet-mr version 1.8.0", False),
        ("parquet-mr version 1.17.1", False),
        ("parquet-mr version 2.0.0", False),
        ("DuckDB", False),
    ],
)
def test_strings_that_may_need_the_page_before_are_declined(tmp_path, writer, may_be_dependent):
    """Neither pyarrow nor the loops decode a page whose first string needs the last string of the page before."""
    path = tmp_path / "f.parquet"
    names = {"s": "DELTA_BYTE_ARRAY", "view": "DELTA_LENGTH_BYTE_ARRAY"}
    rows = table().select(list(names))
    pq.write_table(rows, path, use_dictionary=False, column_encoding=names, data_page_size=2000)
    set_writer(path, writer)
    source = parquet_source([str(path)])
    source.check_files(["view"])
    if may_be_dependent:
        with pytest.raises(Unsupported, match="pages that depend on the previous page"):
            source.check_files(["s"])
    else:
        source.check_files(["s"])


def test_a_page_that_needs_the_page_before_falls_back_to_spark(spark, tmp_path):
    path = tmp_path / "f.parquet"
    rows = pa.table([["abcd", "wxyz"]], pa.schema([pa.field("s", pa.string(), nullable=False)]))
    pq.write_table(
        rows,
        path,
        use_dictionary=False,
        column_encoding="DELTA_BYTE_ARRAY",
        compression="none",
        data_page_size=1,
        write_batch_size=1,
        write_statistics=False,
    )
    # Each page has a string. The size of its prefix is the first value of delta-encoded integers: 80 01, 04, one value, 0.
    prefix_size = bytes.fromhex("80 01 04 01 00")
    data = path.read_bytes()
    assert data.count(prefix_size) == 2
    at = data.rindex(prefix_size) + len(prefix_size) - 1
    path.write_bytes(data[:at] + bytes([3 << 1]) + data[at + 1 :])  # a prefix of three bytes, zigzag
    set_writer(path, "parquet-mr version 1.7.0")
    frame = spark.read.parquet(str(path)).groupBy("s").count()
    expected = [("abcd", 1), ("abcwxyz", 1)]
    assert sorted(map(tuple, frame.collect())) == expected
    assert sorted(map(tuple, frame.transform(kq.kquery_plan, when="always").collect())) == expected
    with pytest.raises(Unsupported, match="pages that depend on the previous page"):
        frame.transform(kq.kquery_plan, when="always", fallback="error")
    context = kq.ExecutionContext()
    context.register_parquet("t", str(path))
    with pytest.raises(Unsupported, match="pages that depend on the previous page"):
        context.sql("SELECT s FROM t").to_arrow()
