"""If a context declines a file because of its contents, the reason names the file."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import kquery_spark as kq
from kquery_spark.errors import Unsupported

DAY = dt.date(2020, 1, 1)
TIME = dt.datetime(2020, 1, 1)


def nested_int96(path: Path) -> None:
    pq.write_table(pa.table({"s": [{"t": TIME}]}), path, use_deprecated_int96_timestamps=True)


def unsupported_parquet_type(path: Path) -> None:
    pq.write_table(pa.table({"t": pa.array([1], pa.time32("ms"))}), path)


def nested_orc_dates(path: Path) -> None:
    orc.write_table(pa.table({"s": [{"d": DAY}]}), str(path))


def orc_without_names(path: Path) -> None:
    orc.write_table(pa.table({"_col0": [1]}), str(path))


def names_that_differ_in_case(path: Path) -> None:
    path.write_text('{"a": 1, "A": 2}\n')


@pytest.mark.parametrize(
    ("format_name", "write", "reason"),
    [
        ("parquet", nested_int96, "the Parquet column s has INT96 times inside"),
        ("parquet", unsupported_parquet_type, "the column t of type time32"),
        ("orc", nested_orc_dates, "the ORC column s has dates inside"),
        ("orc", orc_without_names, "ORC files without column names"),
        ("json", names_that_differ_in_case, "JSON with names that differ"),
    ],
)
def test_the_reason_names_the_file(
    tmp_path: Path, format_name: str, write: Callable[[Path], None], reason: str
) -> None:
    path = tmp_path / f"declined.{format_name}"
    write(path)
    with pytest.raises(Unsupported, match=rf"{reason}.*declined\.{format_name}"):
        getattr(kq.ExecutionContext(), f"register_{format_name}")("t", str(path))
