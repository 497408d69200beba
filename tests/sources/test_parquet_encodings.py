"""Compares delta-encoded values, byte-stream-split values, and decimals in BYTE_ARRAY with pyarrow and Spark."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kquery_spark.errors import SourceError
from kquery_spark.fuzz.settings import IN_DRIVER, applied
from kquery_spark.kernels.parquet_page_table import (
    DELTA_BINARY_PACKED,
    DELTA_BYTE_ARRAY,
    DELTA_LENGTH_BYTE_ARRAY,
)
from kquery_spark.sources.parquet import column_reader
from kquery_spark.sources.parquet.file import OpenFile
from kquery_spark.sources.parquet.open_files import open_file
from kquery_spark.sources.parquet.path_source import parquet_source
from tests.sources.damaged_chunks import check_damaged_chunks
from tests.sources.parquet_reading import (
    CODECS,
    NULLS,
    ROWS,
    assert_equal_to_pyarrow,
    assert_filtered_as_by_spark,
    with_comparable_bits,
    write,
)

DELTAS, SPLIT = "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"
LENGTHS, PREFIXES = "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"
DIGITS = (2, 6, 11, 16, 18, 19, 23, 28, 38)


def decimals(numbers: list[int], digits: int, mask: Any) -> pa.Array:
    """Decimals with two digits after the point whose unscaled integers are these numbers, reduced to ``digits`` digits."""
    limit = 10**digits
    unscaled = [n % limit if n >= 0 else -(-n % limit) for n in numbers]
    scaled = [Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -2)) for n in unscaled]
    values = scaled if mask is None else [None if null else d for d, null in zip(scaled, mask, strict=True)]
    return pa.array(values, pa.decimal128(digits, 2))


def table(nulls: float, rows: int = ROWS) -> tuple[pa.Table, dict[str, tuple[str, str]]]:
    """Return a table with columns of all types that have these encodings, and the two encodings of each column."""
    rng = np.random.default_rng(17)
    mask = rng.random(rows) < nulls if nulls else None
    few, wide = rng.integers(0, 150, rows), rng.integers(-(1 << 63), (1 << 63) - 1, rows, endpoint=True)
    large = [int(a) * (1 << 64) + int(b) for a, b in zip(wide, few, strict=True)]

    def column(values: Any, dtype: pa.DataType | None = None) -> pa.Array:
        return pa.array(values, dtype, mask=mask)

    integers = {
        "i": column(wide.astype(np.int32)),
        "i_sorted": column(np.arange(rows, dtype=np.int32) * 3),
        "l": column(wide),
        "l_few": column(few - 75),
        "l_one": column(np.full(rows, -42)),
        "byte": column((few - 75).astype(np.int8)),
        "u16": column(wide.astype(np.uint16)),
        "u32": column(wide.astype(np.uint32)),
        "u64": column(wide.astype(np.uint64)),
        "day": column(few.astype(np.int32), pa.date32()),
        "ts": column(few * 10**12, pa.timestamp("us")),
        "time": column(few * 10**6, pa.time64("us")),
    }
    floats = {
        "f": column((few / 7).astype(np.float32)),
        "d": column(np.where(few == 3, np.nan, np.where(few == 4, -0.0, wide / 3))),
    }
    strings = {
        "s": column([f"string {v}" * (v % 4) for v in few], pa.string()),
        "sorted": column([f"row {v // 3:09d} of the sorted strings" for v in range(rows)], pa.string()),
        "long": column(["x" * int(v) + str(v % 7) for v in few], pa.string()),
        "empty": column([""] * rows, pa.string()),
        "b": column([bytes([v % 256]) * (v % 30) for v in few], pa.binary()),
    }
    fixed = {f"m{digits}": decimals(large, digits, mask) for digits in DIGITS}
    encodings = {
        **dict.fromkeys(integers, (DELTAS, SPLIT)),
        **dict.fromkeys(floats, (SPLIT, SPLIT)),
        **dict.fromkeys(strings, (LENGTHS, PREFIXES)),
        **dict.fromkeys(fixed, (PREFIXES, SPLIT)),
    }
    return pa.table({**integers, **floats, **strings, **fixed}), encodings


def options(encodings: dict[str, tuple[str, str]], number: int) -> dict[str, Any]:
    """The options that write each column with its first or second encoding."""
    chosen = {name: names[number] for name, names in encodings.items()}
    return {"use_dictionary": False, "column_encoding": chosen, "store_decimal_as_integer": False}


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize(("codec", "version"), list(product(CODECS, ["1.0", "2.0"])))
def test_all_encodings_are_read_as_by_pyarrow(tmp_path, kernels, codec, version, number):
    for nulls in NULLS:
        rows, encodings = table(nulls)
        opened = write(
            tmp_path / f"{nulls}.parquet",
            rows,
            compression=codec,
            data_page_version=version,
            **options(encodings, number),
        )
        group = opened.metadata.row_group(0)
        for index, name in enumerate(rows.schema.names):
            assert encodings[name][number] in group.column(index).encodings
        assert_equal_to_pyarrow(opened, kernels, read=set(rows.schema.names))


@pytest.mark.parametrize("rows", [1, 2, 31, 32, 33, 129])
def test_short_chunks_are_read_as_by_pyarrow(tmp_path, kernels, rows):
    for nulls, number in product((0.0, 0.5, 1.0), (0, 1)):
        some, encodings = table(nulls, rows)
        path = tmp_path / f"{nulls}{number}.parquet"
        opened = write(path, some, compression="none", **options(encodings, number))
        assert_equal_to_pyarrow(opened, kernels, read=set(some.schema.names))


@pytest.mark.parametrize(("codec", "faster"), [("none", {"l", "f", "s", "m38"}), ("zstd", {"l", "s", "m38"})])
def test_all_rows_are_read_by_the_faster_reader(tmp_path, codec, faster):
    rows, encodings = table(0.0)
    some = rows.select(["l", "f", "s", "m38"])
    chosen = options({name: encodings[name] for name in some.schema.names}, 0)
    opened = write(tmp_path / "f.parquet", some, compression=codec, **chosen)
    assert {name for name in some.schema.names if opened.loops_are_faster(0, name)} == faster


def test_large_chunks_are_declined_before_memory_is_allocated(tmp_path, kernels, monkeypatch):
    rows, encodings = table(0.0)
    opened = write(tmp_path / "f.parquet", rows, row_group_size=ROWS, **options(encodings, 0))
    readers = opened.column_readers([0], rows.schema.names, kernels)
    for limit, is_read in ((4 * ROWS - 1, False), (1 << 30, True)):
        monkeypatch.setattr(column_reader, "MAX_CONVERTED_BYTES", limit)
        assert {reader.read() is not None for reader in readers.values()} == {is_read}


def as_decimals(path: Path, digits: dict[str, int]) -> OpenFile:
    """Declare columns of binary values to be decimals with two digits after the point, which pyarrow does not write."""
    data = path.read_bytes()
    size = int.from_bytes(data[-8:-4], "little")
    start = len(data) - 8 - size
    footer = data[start:-8]
    for name, count in digits.items():
        field = b"\x18" + bytes([len(name)]) + name.encode()  # the name, the last field of the schema element
        assert footer.count(field + b"\0") == 1
        # the converted type, the scale, and the precision
        decimal = bytes([0x25, 5 << 1, 0x15, 2 << 1, 0x15, count << 1])
        footer = footer.replace(field + b"\0", field + decimal + b"\0")
    path.write_bytes(data[:start] + footer + len(footer).to_bytes(4, "little") + data[-4:])
    return open_file(parquet_source([str(path)]).files[0])


def sized_integers(nulls: float, rows: int = ROWS) -> tuple[pa.Table, dict[str, int]]:
    """Return columns of big-endian integers with up to two unneeded leading bytes, and the digits of each column."""
    rng = np.random.default_rng(23)
    mask = rng.random(rows) < nulls if nulls else None
    columns, digits = {}, {f"m{count}": count for count in (4, 12, 18, 19, 30, 38)}
    for name, count in digits.items():
        limit = 10**count
        numbers = [int(n) * 7919**9 % limit - limit // 2 for n in rng.integers(0, 1 << 60, rows)]
        numbers = [n if i % 3 else int(n) % 300 - 150 for i, n in enumerate(numbers)]
        sizes = [min(16, n.bit_length() // 8 + 1 + i % 3) for i, n in enumerate(numbers)]
        values = [n.to_bytes(s, "big", signed=True) for n, s in zip(numbers, sizes, strict=True)]
        columns[name] = pa.array(values, pa.binary(), mask=mask)
    return pa.table(columns), digits


@pytest.mark.parametrize("codec", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_decimals_of_any_number_of_bytes_are_read_as_by_pyarrow(tmp_path, kernels, codec, version):
    for nulls, encoding in product(NULLS, ("dictionary", "PLAIN", LENGTHS, PREFIXES)):
        rows, digits = sized_integers(nulls)
        path = tmp_path / f"{nulls}{encoding}.parquet"
        is_dictionary = encoding == "dictionary"
        write(
            path,
            rows,
            compression=codec,
            data_page_version=version,
            use_dictionary=is_dictionary,
            column_encoding=None if is_dictionary else dict.fromkeys(digits, encoding),
        )
        opened = as_decimals(path, digits)
        assert {leaf.physical_type for leaf in map(opened.flat, digits)} == {"BYTE_ARRAY"}
        assert opened.schema.field("m38").type == pa.decimal128(38, 2)
        assert_equal_to_pyarrow(opened, kernels, read=set(digits))


@pytest.mark.parametrize("digits", [12, 30])
def test_the_dictionary_of_decimals_of_any_number_of_bytes(tmp_path, kernels, digits):
    path = tmp_path / "f.parquet"
    values = [i % 40 * 7919 - 150_000 for i in range(ROWS)]
    data = [v.to_bytes(v.bit_length() // 8 + 1, "big", signed=True) for v in values]
    write(path, pa.table({"m": pa.array(data, pa.binary())}), row_group_size=ROWS)
    opened = as_decimals(path, {"m": digits})
    assert opened.may_have_small_dictionary(0, "m")
    found = opened.column_readers([0], ["m"], kernels)["m"].dictionary_values()
    assert found is not None
    expected = with_comparable_bits(opened.read(0, ["m"]).column(0)).unique()
    assert with_comparable_bits(pa.chunked_array([found])).equals(expected)


@pytest.mark.parametrize("size", [0, 17])
def test_decimals_of_other_numbers_of_bytes_are_declined(tmp_path, kernels, size):
    path = tmp_path / "f.parquet"
    write(path, pa.table({"m": pa.array([b"\1", bytes(size)], pa.binary())}), use_dictionary=False)
    opened = as_decimals(path, {"m": 20})
    assert opened.column_readers([0], ["m"], kernels)["m"].read() is None


def test_decimals_that_have_too_many_digits_are_declined(tmp_path, kernels):
    path = tmp_path / "f.parquet"
    write(path, pa.table({"m": pa.array([b"\1" + bytes(8)], pa.binary())}), use_dictionary=False)
    opened = as_decimals(path, {"m": 18})  # 18 digits fit into eight bytes, and 2^64 does not
    assert opened.column_readers([0], ["m"], kernels)["m"].read() is None


@pytest.mark.parametrize("codec", ["none", "snappy"])
@pytest.mark.parametrize("number", [0, 1])
def test_damaged_pages_are_errors_or_what_pyarrow_reads(tmp_path, kernels, codec, number):
    rows, encodings = table(0.2, rows=600)
    path = tmp_path / "f.parquet"
    write(path, rows, compression=codec, row_group_size=600, **options(encodings, number))
    check_damaged_chunks(path, kernels, 40 * rows.num_columns)


def test_damaged_decimals_of_any_number_of_bytes(tmp_path, kernels):
    for encoding in ("PLAIN", LENGTHS, PREFIXES):
        rows, digits = sized_integers(0.2, rows=600)
        path = tmp_path / f"{encoding}.parquet"
        chosen = dict.fromkeys(digits, encoding)
        write(
            path, rows, compression="none", row_group_size=600, use_dictionary=False, column_encoding=chosen
        )
        as_decimals(path, digits)
        check_damaged_chunks(path, kernels, 200)


SPARK_COLUMNS = {
    "i": "CAST(id * 7919 % 100003 AS INT)",
    "l": "id * 1000000007 - 1500000000000",
    "byte": "CAST(id % 256 - 128 AS BYTE)",
    "day": "date_add(DATE '1969-01-01', CAST(id AS INT))",
    "ts": "timestamp_micros(id * 77777777777)",
    "s": "concat('string ', lpad(id, 8, '0'), repeat('x', CAST(id % 5 AS INT)))",
    "b": "CAST(repeat(CAST(id AS STRING), CAST(id % 4 AS INT)) AS BINARY)",
    "m12": "CAST((id - 1500) * 1000003 AS DECIMAL(12, 2))",
    "m38": "CAST((id - 1500) AS DECIMAL(38, 10)) * 1000000000000000000",
}


@pytest.mark.parametrize("pages", ["deltas", "dictionary, then deltas"])
@pytest.mark.parametrize("codec", ["snappy", "zstd"])
def test_delta_pages_that_spark_wrote_are_read_as_by_spark(spark, tmp_path, check_reader, pages, codec):
    path = str(tmp_path / "deltas")
    columns = [f"IF(id % 7 = 3, NULL, {value}) AS {name}" for name, value in SPARK_COLUMNS.items()]
    is_mixed = pages != "deltas"
    timestamps = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
    with applied(spark, {**timestamps, **IN_DRIVER}):
        # the first rows repeat a few values, so that the writer begins with a dictionary
        source = (
            spark.range(6000).selectExpr("IF(id < 3000, id % 10, id) AS id")
            if is_mixed
            else spark.range(3000)
        )
        writer = source.coalesce(1).selectExpr("id", *columns).write.option("parquet.writer.version", "v2")
        writer = writer.option("parquet.enable.dictionary", str(is_mixed).lower()).option(
            "compression", codec
        )
        writer = writer.option("parquet.page.size", 2000).option("parquet.dictionary.page.size", 2000)
        writer.option("parquet.page.row.count.limit", 500).parquet(path)
        for condition in ("i > 50000", "s > 'string 00002' AND byte > 3", "m38 < 0 AND l < 0", "id > 5"):
            assert_filtered_as_by_spark(spark, path, condition)
    check_reader()
    opened = open_file(parquet_source([path]).files[0])
    found = {
        name: set(opened.metadata.row_group(0).column(i).encodings)
        for i, name in enumerate(opened.schema.names)
    }
    for name in SPARK_COLUMNS.keys() - {"byte"}:  # the dictionary of "byte" never becomes too large
        assert (PREFIXES if name in ("s", "b", "m38") else DELTAS) in found[name], (name, found[name])
        assert ("RLE_DICTIONARY" in found[name]) == is_mixed, (name, found[name])


def test_files_that_pyarrow_wrote_are_read_by_spark_and_by_the_engine(spark, tmp_path, check_reader):
    rows, encodings = table(0.2)
    names = [name for name in rows.schema.names if name != "time" and not name.startswith("u")]
    for number in (0, 1):
        chosen = {name: encodings[name][number] for name in names if encodings[name][number] != SPLIT}
        path = tmp_path / f"{number}.parquet"
        pq.write_table(
            rows.select(list(chosen)),
            path,
            use_dictionary=False,
            column_encoding=chosen,
            store_decimal_as_integer=False,
        )
        with applied(spark, IN_DRIVER):
            condition = "l_few > 20" if "l_few" in chosen else "long > 'x'"
            assert_filtered_as_by_spark(spark, str(path), condition)
    check_reader()


DELTA_OF_EQUAL = bytes.fromhex("80 01 04 03 08 00 00 00 00 00")
"""The integers 4, 4, 4 with DELTA_BINARY_PACKED; if 12 bytes follow, also three strings with DELTA_LENGTH_BYTE_ARRAY."""


@pytest.mark.parametrize(
    ("dtype", "encoding"),
    [
        (pa.int64(), DELTA_LENGTH_BYTE_ARRAY),
        (pa.int64(), DELTA_BYTE_ARRAY),
        (pa.float32(), DELTA_BINARY_PACKED),
        (pa.float64(), DELTA_LENGTH_BYTE_ARRAY),
        (pa.decimal128(38, 2), DELTA_LENGTH_BYTE_ARRAY),
    ],
)
def test_pages_with_an_encoding_of_other_types_are_declined(tmp_path, kernels, dtype, encoding):
    """pyarrow refuses the encoding for the type, although the bytes are valid in it (except for DELTA_BYTE_ARRAY)."""
    path = tmp_path / "f.parquet"
    width = 8 if dtype.bit_width == 64 else dtype.bit_width // 8
    data = DELTA_OF_EQUAL.ljust(3 * width, b"\0")
    values = pa.Array.from_buffers(dtype, 3, [None, pa.py_buffer(data)])
    schema = pa.schema([pa.field("x", dtype, nullable=False)])
    pq.write_table(
        pa.table([values], schema), path, use_dictionary=False, compression="none", write_statistics=False
    )
    # three values, their encoding, and the encodings of the levels
    header = bytes.fromhex("15 06 15 00 15 06 15 06")
    good = path.read_bytes()
    assert good.count(header) == 1
    unchanged = open_file(parquet_source([str(path)]).files[0])
    assert unchanged.column_readers([0], ["x"], kernels)["x"].read() is not None
    changed = tmp_path / "changed.parquet"
    changed.write_bytes(good.replace(header, bytes([0x15, 0x06, 0x15, 2 * encoding]) + header[4:]))
    opened = open_file(parquet_source([str(changed)]).files[0])
    assert opened.column_readers([0], ["x"], kernels)["x"].read() is None
    with pytest.raises(SourceError, match="row group 0"):
        opened.read(0, ["x"])
