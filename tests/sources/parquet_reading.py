"""Helpers for the tests of the compiled Parquet reader: files, selections of rows, and the comparison with pyarrow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import kquery_spark as kq
from kquery_spark.sources.parquet.file import OpenFile
from kquery_spark.sources.parquet.open_files import open_file
from kquery_spark.sources.parquet.path_source import parquet_source
from kquery_spark.types.vector import narrow

ROWS = 5000
CODECS = ["none", "snappy", "gzip", "zstd", "lz4"]
NULLS = [0.0, 0.05, 0.9]


def write(path: Path, rows: pa.Table, **options: Any) -> OpenFile:
    """Write a file of several row groups with small pages, and open it. options: change the options of the writer."""
    defaults = {
        "data_page_size": 1500,
        "write_batch_size": 128,
        "row_group_size": 3000,
        "store_decimal_as_integer": True,
    }
    pq.write_table(rows, str(path), **{**defaults, **options})
    return open_file(parquet_source([str(path)]).files[0])


def with_comparable_bits(column: pa.ChunkedArray) -> pa.Array:
    """Convert a column to one array whose equality compares bits.

    Floats and short decimals become integers, and dictionaries become strings.
    """
    array = column.combine_chunks()
    if pa.types.is_decimal(array.type) and array.type.precision <= 18:
        array = narrow(array)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_floating(array.type):
        array = array.view(pa.int32() if array.type == pa.float32() else pa.int64())
    return array


def selections(rows: int) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
    rng = np.random.default_rng(rows)
    every = np.arange(rows)
    some = [every[rng.random(rows) < share] for share in (0.004, 0.03, 0.3, 0.9)]
    return [every[:0], every[:1], every[-1:], every[rows // 3 : rows // 3 + 5], every, *some]


def assert_equal_to_pyarrow(opened: OpenFile, kernels: ModuleType, *, read: set[str]) -> None:
    """Compare all rows and selections of each column, for each row group and, if possible, for all row groups together.

    read: the columns that the loops must read.
    """
    every = range(len(opened.groups))
    together = [every] if len(every) > 1 else []
    for groups in [*([group] for group in every), *together]:
        rows = sum(opened.groups[group][0] for group in groups)
        names = opened.schema.names
        if len(groups) > 1:
            names = [n for n in names if all(opened.can_coalesce(groups[0], g, [n]) for g in groups)]
        columns = opened.column_readers(groups, names, kernels)
        for name in names:
            expected = pa.concat_arrays(
                [with_comparable_bits(opened.read(group, [name]).column(0)) for group in groups]
            )
            found = columns[name].read() if name in columns else None
            assert (found is not None) == (name in read), (name, groups)
            if found is None:
                assert name not in columns or all(columns[name].read(r) is None for r in selections(rows)[1:])
                continue
            found.validate(full=True)
            assert with_comparable_bits(pa.chunked_array([found])).equals(expected), (name, groups)
            for chosen in selections(rows):
                some = columns[name].read(chosen)
                assert some is not None, (name, groups, len(chosen))
                some.validate(full=True)
                assert with_comparable_bits(pa.chunked_array([some])).equals(
                    expected.take(pa.array(chosen))
                ), (
                    name,
                    groups,
                    len(chosen),
                )


def assert_pages_are_read(
    path: Path, kernels: ModuleType, table_of: Callable[[float], pa.Table], **options: Any
) -> None:
    """Compare files with and without dictionaries with pyarrow. table_of: returns the table for a share of NULLs."""
    for nulls in NULLS:
        rows = table_of(nulls)
        opened = write(path / f"dictionary{nulls}.parquet", rows, **options)
        assert_equal_to_pyarrow(opened, kernels, read=set(rows.schema.names))
        plain = write(path / f"plain{nulls}.parquet", rows, use_dictionary=False, **options)
        assert_equal_to_pyarrow(plain, kernels, read=set(rows.schema.names))


def assert_filtered_as_by_spark(spark: Any, path: str, condition: str) -> None:
    """Compare the rows of a file that pass a condition with those of Spark, to the last bit. Some rows must pass."""
    frame = spark.read.parquet(path).where(condition)
    expected = sorted(map(repr, frame.collect()))
    assert expected
    fast = frame.transform(kq.kquery_plan, when="always", fallback="error")
    assert sorted(map(repr, fast.collect())) == expected
