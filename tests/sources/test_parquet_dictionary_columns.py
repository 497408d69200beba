"""Dictionary columns: the same values as pyarrow reads, and errors where the pages are corrupt."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from kquery_spark.errors import SourceError
from kquery_spark.expr import Call, Column
from kquery_spark.kernels.compiled import FILE_LOOPS
from kquery_spark.physical.row_conditions import RowConditions
from kquery_spark.sources.base import Split
from kquery_spark.sources.parquet import chunk_pages, flat_chunk, page_codecs
from kquery_spark.sources.parquet import file as parquet_file
from kquery_spark.sources.parquet.column_reader import ColumnReader
from kquery_spark.sources.parquet.file import OpenFile
from kquery_spark.sources.parquet.path_source import parquet_source
from kquery_spark.sources.parquet.source import ParquetSource
from kquery_spark.types.vector import Int64s
from tests.sources.dictionary_files import INDEXED, table, write

pytestmark = pytest.mark.usefixtures("dictionaries_of_any_size")
WRITERS = list(product(["none", "snappy", "zstd", "gzip", "lz4"], ["1.0", "2.0"], [True, False]))


def bits(array: pa.Array) -> list[Any]:
    """Values with their signs of zero; NaN equal to itself."""
    return [repr(value) for value in array.to_pylist()]


@pytest.mark.parametrize(("codec", "version", "store"), WRITERS)
def test_indices_give_the_values_that_pyarrow_reads(tmp_path, codec, version, store):
    source = write(
        tmp_path / "f.parquet",
        table(),
        compression=codec,
        data_page_version=version,
        store_schema=store,
        store_decimal_as_integer=store,
    )
    for split in source.splits():
        (whole,) = source.read(split, source.schema.names)
        found = {c: source.dictionary_column(split, c) for c in source.schema.names}
        stored = {c for c, column in found.items() if column is not None}
        assert stored == INDEXED
        for name in stored:
            column, expected = found[name], whole.columns[whole.schema.names.index(name)]
            assert column is not None
            assert column.values.type == expected.type
            assert bits(column.take(None)) == bits(expected), name
            some = np.array([0, 5, 6, 1999, split.rows - 1])
            assert bits(column.take(some)) == bits(expected.take(pa.array(some))), name
            assert column.may_have_nulls == (expected.null_count > 0)


def test_rows_are_found_by_their_values(tmp_path):
    source = write(tmp_path / "f.parquet", table())
    (split, _) = source.splits()
    (batch,) = source.read(split, ["i"])
    column = source.dictionary_column(split, "i")
    assert column is not None
    expected = np.array([*(v % 3 == 0 for v in column.values.to_pylist()), False])
    everywhere = [row for row, v in enumerate(batch.columns[0].to_pylist()) if v is not None and v % 3 == 0]
    assert column.rows_where(expected).tolist() == everywhere
    some: Int64s = np.arange(0, split.rows, 7)
    assert column.rows_where(expected, some).tolist() == [row for row in everywhere if row % 7 == 0]
    nulls = np.zeros(len(expected), np.bool_)
    nulls[-1] = True
    assert len(column.rows_where(nulls)) == batch.columns[0].null_count
    assert len(column.rows_where(~nulls | nulls)) == split.rows
    assert len(column.rows_where(nulls & ~nulls)) == 0
    with pytest.raises(ValueError, match="one for NULL"):  # the loops do not check the length
        column.rows_where(expected[:-1])


@pytest.mark.parametrize("values", [1, 2, 3, 5, 200, 257, 4000, 20_000, 65_535])
def test_indices_of_all_widths(tmp_path, values):
    rng = np.random.default_rng(values)
    found = np.concatenate([rng.permutation(values), rng.integers(0, values, 70_000)])
    null = rng.random(len(found)) < 0.02
    rows = pa.table({"x": pa.array(found, mask=null), "y": pa.array(found)})
    source = write(
        tmp_path / "f.parquet",
        rows,
        row_group_size=len(rows),
        data_page_size=10**5,
        dictionary_pagesize_limit=10**7,
    )
    (split,) = source.splits()
    few = np.flatnonzero(rng.random(len(found)) < 0.03)
    for name in ("x", "y"):
        column = source.dictionary_column(split, name)
        assert column is not None
        expected = rng.random(len(column.values) + 1) < 0.1
        expected[-1] &= column.may_have_nulls
        whole = rows[name].combine_chunks()
        assert column.take(few).equals(whole.take(pa.array(few)))  # from the packed indices
        values_and_null = pa.concat_arrays([column.values, pa.nulls(1, pa.int64())])
        hits = pc.is_in(whole, values_and_null.filter(pa.array(expected))).to_numpy(zero_copy_only=False)
        assert column.rows_where(expected).tolist() == np.flatnonzero(hits).tolist()
        assert column.rows_where(expected, few).tolist() == few[hits[few]].tolist()
        assert not column._are_decoded
        assert column.take(None).equals(whole)
        assert column._are_decoded
        assert column.take(few).equals(whole.take(pa.array(few)))
        assert column.rows_where(expected).tolist() == np.flatnonzero(hits).tolist()
        assert column.rows_where(expected, few).tolist() == few[hits[few]].tolist()


def test_what_has_no_use_is_not_read_so(tmp_path, monkeypatch):
    rows = table(values=3000)
    # only the first pages are dictionary-encoded
    source = write(tmp_path / "f.parquet", rows, dictionary_pagesize_limit=1000)
    assert source.dictionary_column(source.splits()[0], "l") is None
    plain = write(tmp_path / "plain.parquet", rows, use_dictionary=False)
    assert plain.dictionary_column(plain.splits()[0], "l") is None
    brotli = write(tmp_path / "brotli.parquet", rows, compression="brotli")
    assert brotli.dictionary_column(brotli.splits()[0], "l") is None
    indexed = write(tmp_path / "indexed.parquet", rows)
    assert indexed.dictionary_column(indexed.splits()[0], "l") is not None
    monkeypatch.setattr(flat_chunk, "_MIN_ROWS_PER_VALUE", 32)
    again = write(tmp_path / "again.parquet", rows)
    assert again.dictionary_column(again.splits()[0], "l") is None
    monkeypatch.setattr(FILE_LOOPS, "kernels", lambda *_: None)
    assert indexed.dictionary_column(indexed.splits()[0], "l") is None


def test_chunks_without_a_small_dictionary_are_not_read_to_filter_by_it(tmp_path, monkeypatch):
    monkeypatch.setattr(flat_chunk, "_MIN_ROWS_PER_VALUE", 32)
    rows = pa.table(
        {
            "few": pa.array(np.arange(20_000) % 600),
            "many": pa.array(np.arange(20_000) % 5000),
            "text": pa.array([str(i % 9) for i in range(20_000)]),
        }
    )
    source = write(tmp_path / "f.parquet", rows, row_group_size=20_000)
    (split,) = source.splits()
    columns_read = []
    real = OpenFile.column_readers

    def column_readers(self, groups, columns, kernels):
        columns_read.extend(columns)
        return real(self, groups, columns, kernels)

    monkeypatch.setattr(OpenFile, "column_readers", column_readers)
    assert [c for c in rows.column_names if source.dictionary_column(split, c) is not None] == ["few"]
    assert columns_read == ["few"]


def test_a_few_pages_are_read_instead(tmp_path, monkeypatch):
    monkeypatch.setattr(chunk_pages, "_MIN_PAGED_ROWS", 0)
    source = write(tmp_path / "f.parquet", table(rows=40_000), row_group_size=40_000, data_page_size=500)
    (split,) = source.splits()
    assert (
        source.dictionary_column(split, "l", np.arange(100)) is not None
    )  # the loops read the small chunk whole
    monkeypatch.setattr(parquet_file, "_MIN_PAGED_BYTES_IN_LOOPS", 0)
    assert source.dictionary_column(split, "l", np.arange(100)) is None
    assert source.dictionary_column(split, "l", np.arange(0, 40_000, 50)) is not None


def test_corrupt_pages_are_errors_or_what_pyarrow_reads(tmp_path):
    rng = np.random.default_rng(1)
    rows = table(rows=3000, values=60).select(["i", "runs"])
    path = tmp_path / "f.parquet"
    write(path, rows, compression="none", row_group_size=3000)
    good = path.read_bytes()
    chunk = pq.read_metadata(path).row_group(0).column(0)
    start, end = chunk.dictionary_page_offset, chunk.data_page_offset + chunk.total_compressed_size
    outcomes = set()
    for number in range(200):
        bad = bytearray(good)
        for _ in range(int(rng.integers(1, 4))):
            bad[int(rng.integers(start, end))] = int(rng.integers(0, 256))
        changed = tmp_path / f"{number}.parquet"
        changed.write_bytes(bad)
        source = parquet_source([str(changed)])
        (split,) = source.splits()

        def values(
            by_indices: bool, source: ParquetSource = source, split: Split = split
        ) -> list[Any] | None:
            try:
                column = source.dictionary_column(split, "i") if by_indices else None
                if column is not None:
                    few = np.arange(0, split.rows, 100)
                    picked, whole = column.take(few), column.take(None)
                    assert picked.equals(whole.take(pa.array(few)))
                    return whole.to_pylist()
                return next(source.read(split, ["i"])).columns[0].to_pylist()
            except SourceError:
                return None

        found, expected = values(True), values(False)
        if expected is not None:
            assert found == expected, number
        outcomes.add((found is None, expected is None))
    assert (False, False) in outcomes
    assert (True, True) in outcomes


def test_pages_of_another_form_are_read_by_pyarrow(tmp_path, monkeypatch, kernels):
    source = write(tmp_path / "f.parquet", table())
    split = source.splits()[0]
    (whole,) = source.read(split, sorted(INDEXED))
    some = np.arange(0, split.rows, 40)

    def check() -> None:
        for name, expected in zip(sorted(INDEXED), whole.columns, strict=True):
            column = source.dictionary_column(split, name)
            assert column is not None
            assert bits(column.take(some)) == bits(expected.take(pa.array(some))), name
            assert bits(column.take(None)) == bits(expected), name
            again = source.dictionary_column(split, name)
            assert again is not None
            assert len(again.rows_where(np.ones(len(column.values) + 1, np.bool_))) == split.rows

    monkeypatch.setattr(ColumnReader, "packed_indices", lambda self: None)
    check()
    monkeypatch.undo()
    monkeypatch.setattr(flat_chunk, "_MIN_ROWS_PER_VALUE", 1)
    for name in ("decode_indices", "decode_selected_indices", "filter_chunk"):
        monkeypatch.setattr(kernels, name, lambda *given: -1)
    check()


def test_nulls_are_known_by_the_rows(tmp_path):
    source = write(tmp_path / "f.parquet", table())
    (split, _) = source.splits()
    (whole,) = source.read(split, ["i"])
    column = source.dictionary_column(split, "i")
    assert column is not None
    wrong = replace(column, may_have_nulls=False)  # as if the statistics were wrong
    assert wrong.take(None).equals(whole.columns[0])
    is_null = np.flatnonzero(pc.is_null(whole.columns[0]))
    field, operand = source.schema.field("i"), Column("i", pa.int32())
    for name, expected in (("isnull", is_null), ("isnotnull", np.setdiff1d(np.arange(split.rows), is_null))):
        flags = RowConditions([Call.of(name, operand)]).passing_values(field, wrong)
        assert wrong.rows_where(flags).tolist() == expected.tolist()


def test_a_dictionary_of_a_changed_file_is_an_error(tmp_path):
    path = tmp_path / "f.parquet"
    source = write(path, table())
    split = source.splits()[0]
    assert source.dictionary_column(split, "i") is not None
    path.write_bytes(path.read_bytes() + b"more")
    with pytest.raises(SourceError, match="has changed since"):
        source.dictionary_column(split, "i")


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_bytes_of_another_size_than_the_header_says_are_no_page(codec):
    data = bytes(range(100))
    stored = np.frombuffer(pa.compress(data, codec, asbytes=True), np.uint8)
    found = page_codecs.decompress(codec.upper(), stored, 100)
    assert found is not None
    assert found.tobytes() == data
    for size in (50, 99, 101, 200):
        assert page_codecs.decompress(codec.upper(), stored, size) is None, size
    assert page_codecs.decompress(codec.upper(), np.empty(0, np.uint8), 100) is None
