"""Writing generated tables as Parquet once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.suites.base import Table

Maker = Callable[[], Iterator[pa.Table]]


def write_once(
    directory: Path, options: Mapping[str, object], makers: Mapping[str, Maker]
) -> tuple[Table, ...]:
    """``<directory>/<name>.parquet`` of every maker; a directory that was written with the same options is left as it is."""
    manifest = directory / "_made.json"
    tables = tuple(Table(name, directory / f"{name}.parquet") for name in makers)
    if manifest.exists() and json.loads(manifest.read_text()) == dict(options):
        return tables
    directory.mkdir(parents=True, exist_ok=True)
    for table in tables:
        _write(table.path, makers[table.name]())
    # written last: a run that was interrupted leaves no manifest and is done again
    manifest.write_text(json.dumps(dict(options)) + "\n")
    return tables


def _write(path: Path, batches: Iterator[pa.Table]) -> None:
    """Write each batch as one row group, with page indexes, as Spark does."""
    first = next(batches)
    with pq.ParquetWriter(path, first.schema, write_page_index=True) as writer:
        for batch in chain([first], batches):
            writer.write_table(batch, row_group_size=max(1, batch.num_rows))
