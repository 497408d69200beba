"""Parquet: files of all encodings, codecs and page versions that pyarrow writes, damaged in footers, page headers and pages."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.sources.mutations.formats import MutatedFormat, Mutation, Pristine
from tests.sources.mutations.mutate import Region, mutated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kquery_spark import ExecutionContext

_ROWS = 240
_HEADER_BYTES = 48  # at least of a page's header, with statistics more
_QUERIES = (
    "SELECT * FROM t",
    "SELECT * FROM t WHERE k = 3",
    "SELECT count(*), min(k), max(k), count(k) FROM t",
)
_DELTAS = {
    "k": "DELTA_BINARY_PACKED",
    "big": "DELTA_BINARY_PACKED",
    "s": "DELTA_BYTE_ARRAY",
    "b": "DELTA_LENGTH_BYTE_ARRAY",
    "f": "BYTE_STREAM_SPLIT",
    "d": "BYTE_STREAM_SPLIT",
}
_INT96 = {"use_deprecated_int96_timestamps": True}
_ALL_PAGES: Mapping[str, Any] = {
    "write_page_index": True,
    "data_page_size": 256,
    "dictionary_pagesize_limit": 1 << 20,
}


def _make(directory: Path) -> list[Pristine]:
    flat, nested, times, wide = _flat(), _nested(), _times(), _wide()
    files: dict[str, tuple[pa.Table, dict[str, Any]]] = {
        "plain": (flat, {"use_dictionary": False, "compression": "none"}),
        "snappy": (flat, {"compression": "snappy"}),
        "plain_snappy": (flat, {"compression": "snappy", "use_dictionary": False}),
        "gzip_v2": (flat, {"compression": "gzip", "data_page_version": "2.0"}),
        "zstd_index": (flat, {"compression": "zstd", **_ALL_PAGES}),
        "lz4": (flat, {"compression": "lz4", "use_dictionary": False}),
        "lz4_v2": (flat, {"compression": "lz4", "data_page_version": "2.0"}),
        "none_v2": (flat, {"compression": "none", "data_page_version": "2.0"}),
        "deltas": (flat, {"use_dictionary": False, "column_encoding": _DELTAS, "data_page_version": "2.0"}),
        "deltas_v1": (flat, {"use_dictionary": False, "column_encoding": _DELTAS, "compression": "none"}),
        "no_statistics": (flat, {"write_statistics": False}),
        "groups": (flat, {"row_group_size": 60, "compression": "none", **_ALL_PAGES}),
        "checksums": (flat, {"write_page_checksum": True, "store_schema": True}),
        "nested": (nested, {"compression": "none"}),
        "nested_v2": (nested, {"compression": "zstd", "data_page_version": "2.0", **_ALL_PAGES}),
        "int96": (times, _INT96),
        "int96_v2": (times, {**_INT96, "use_dictionary": False, "data_page_version": "2.0"}),
        "times": (times, {"compression": "none"}),
        "decimals": (_decimals(), {"store_decimal_as_integer": True}),
        "long_decimals": (_decimals(), {"compression": "none"}),
        "long_decimals_lz4": (_decimals(), {"compression": "lz4", "use_dictionary": False}),
        "wide": (wide, {"row_group_size": 80, "compression": "none"}),
    }
    return [_written(directory, name, *files[name]) for name in files]


def _written(directory: Path, name: str, table: pa.Table, options: Mapping[str, Any]) -> Pristine:
    root = directory / f"{name}.table"
    root.mkdir(parents=True)
    file = root / f"{name}.parquet"
    # Arrow's own schema would be most of a footer
    pq.write_table(table, file, **{"store_schema": False, **options})
    return Pristine(name, root, (file,), _QUERIES)


def _keys() -> pa.Array:
    return pa.array([i % 7 if i % 11 else None for i in range(_ROWS)], pa.int32())


def _flat() -> pa.Table:
    rows = range(_ROWS)
    return pa.table(
        {
            "k": _keys(),
            "big": pa.array([i * 10**12 - 7 for i in rows]),
            "short": pa.array([i * 13 if i % 10 else None for i in rows], pa.uint16()),
            "small": pa.array([i % 100 for i in rows], pa.int8()),
            "s": pa.array([f"string {i % 20}" if i % 5 else None for i in rows]),
            "b": pa.array([bytes([i % 256]) * (i % 4) for i in rows]),
            "f": pa.array(np.arange(_ROWS, dtype=np.float32) / 3),
            "d": pa.array([None if i % 3 else i / 7 for i in rows]),
            "flag": pa.array([i % 3 == 0 for i in rows]),
            "maybe": pa.array([None if i % 4 == 0 else i % 3 == 0 for i in rows]),
            "day": pa.array([dt.date(2020, 1, 1) + dt.timedelta(i) for i in rows]),
            "m": pa.array([Decimal(i).scaleb(-2) for i in rows], pa.decimal128(9, 2)),
        }
    )


def _nested() -> pa.Table:
    rows = range(_ROWS)
    return pa.table(
        {
            "k": _keys(),
            "list": pa.array([list(range(i % 4)) if i % 6 else None for i in rows], pa.list_(pa.int64())),
            "struct": pa.array([{"x": i, "y": f"y{i % 9}"} if i % 5 else None for i in rows]),
            "map": pa.array(
                [[(f"k{i % 3}", i)] if i % 4 else [] for i in rows], pa.map_(pa.string(), pa.int32())
            ),
            "deep": pa.array([[{"z": [i, None]}, None] for i in rows]),
        }
    )


def _times() -> pa.Table:
    start = dt.datetime(2020, 1, 1)
    seconds = [start + dt.timedelta(seconds=977 * i) if i % 8 else None for i in range(_ROWS)]
    return pa.table(
        {
            "k": _keys(),
            "ts": pa.array(seconds, pa.timestamp("us", "UTC")),
            "ntz": pa.array(seconds, pa.timestamp("us")),
            "ms": pa.array(seconds, pa.timestamp("ms", "UTC")),
        }
    )


def _decimals() -> pa.Table:
    def decimals(digits: int) -> pa.Array:
        values = [Decimal(i * 10 ** (digits - 4)).scaleb(-2) if i % 9 else None for i in range(_ROWS)]
        return pa.array(values, pa.decimal128(digits, 2))

    return pa.table({"k": _keys(), **{f"m{digits}": decimals(digits) for digits in (7, 18, 26, 38)}})


def _wide() -> pa.Table:
    return pa.table({"k": _keys(), **{f"c{i}": pa.array(np.arange(_ROWS) * i) for i in range(24)}})


@cache
def _regions(data: bytes) -> dict[str, list[Region]]:
    """The regions of an undamaged file by kind."""
    metadata = pq.read_metadata(pa.BufferReader(data))
    footer = len(data) - 8 - metadata.serialized_size
    headers, pages_end = [], 4
    for group in range(metadata.num_row_groups):
        for index in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(index)
            starts = {chunk.dictionary_page_offset or chunk.data_page_offset, chunk.data_page_offset}
            headers += [
                Region(f"page header of {chunk.path_in_schema}", s, s + _HEADER_BYTES) for s in starts
            ]
            pages_end = max(pages_end, min(starts) + chunk.total_compressed_size)
    regions = {
        "footer": [Region("footer", footer, len(data) - 8)],
        "tail": [Region("tail", len(data) - 8, len(data))],
        "header": headers,
        "pages": [Region("pages", 4, pages_end)],
        "index": [Region("page index", pages_end, footer)],
    }
    return {kind: [r for r in some if r.end > r.start] for kind, some in regions.items()}


_WEIGHTS = {"footer": 10, "tail": 1, "header": 6, "pages": 4, "index": 2}


def _mutate(data: bytes, file: Path, rng: Random) -> Mutation:
    regions = _regions(data)
    kinds = [kind for kind in _WEIGHTS if regions[kind]]
    kind = rng.choices(kinds, [_WEIGHTS[kind] for kind in kinds])[0]
    mutation = mutated(data, regions[kind], rng)
    change = len(mutation.data) - len(data)
    is_footer_whole = kind == "footer" and change and mutation.data[-4:] == b"PAR1"
    if not is_footer_whole or rng.random() < 0.2:
        return mutation
    # otherwise a reader would see no more than a wrong length
    length = int.from_bytes(data[-8:-4], "little") + change
    mended = b"".join((mutation.data[:-8], length.to_bytes(4, "little"), b"PAR1"))
    return Mutation(mended, f"{mutation.description}, with its length")


def _register(context: ExecutionContext, root: Path) -> None:
    context.register_parquet("t", str(root))


def _frame(spark: SparkSession, root: Path) -> DataFrame:
    return spark.read.parquet(str(root))


def _prepare() -> None:
    """Lets dictionary indices and single pages be read of small row groups, too."""
    from kquery_spark.kernels.compiled import FILE_LOOPS
    from kquery_spark.physical import split_columns
    from kquery_spark.sources.parquet import chunk_pages, flat_chunk
    from kquery_spark.sources.parquet import file as parquet_file
    from kquery_spark.sources.parquet.file import OpenFile

    FILE_LOOPS.compile_now()
    split_columns._MIN_INDEXED_ROWS = 0
    flat_chunk._MIN_ROWS_PER_VALUE = 1
    OpenFile.loops_are_faster = lambda self, group, column: True  # type: ignore[method-assign]
    chunk_pages._MIN_PAGED_ROWS = 0
    parquet_file._MIN_PAGED_BYTES_IN_LOOPS = 0


FORMAT = MutatedFormat("parquet", _make, _mutate, _register, _frame, _prepare)
