"""Damaged metadata and deletion vectors of Delta and Iceberg tables: errors that name the table or file."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

import kquery_spark as kq
from kquery_spark.context.table_metadata import as_source_errors
from kquery_spark.errors import SourceError, Unsupported

ROWS = pa.table({"id": range(20), "p": ["a", "b"] * 10, "day": [dt.date(2020, 1, 1)] * 20})


def zeros(data: bytes) -> bytes:
    return data[: len(data) // 2] + bytes(64) + data[len(data) // 2 + 64 :]


def half(data: bytes) -> bytes:
    return data[: len(data) // 2]


def nothing(data: bytes) -> bytes:
    return b""


@pytest.fixture
def iceberg(tmp_path: Path) -> Path:
    """The newest metadata file of a table."""
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    return Path(table.metadata_location.removeprefix("file://"))


@pytest.mark.parametrize("damage", [zeros, half, nothing])
@pytest.mark.parametrize("pattern", ["*.metadata.json", "snap-*.avro", "*-m0.avro"])
def test_iceberg_metadata(iceberg: Path, pattern: str, damage: Callable[[bytes], bytes]):
    damaged = [file for file in iceberg.parent.glob(pattern) if file.suffix == ".avro" or file == iceberg]
    assert damaged
    for file in damaged:
        file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(SourceError, match=r"the Iceberg table .*t"):
        kq.ExecutionContext().register_iceberg("t", str(iceberg))


def test_manifests_are_decoded_within_bounds(iceberg: Path, monkeypatch: pytest.MonkeyPatch):
    """pyiceberg's compiled decoder reads beyond its buffer where a length is damaged, which ends the process."""
    monkeypatch.setitem(sys.modules, "pyiceberg.avro.decoder_fast", object())  # so that it cannot be imported
    ctx = kq.ExecutionContext()
    ctx.register_iceberg("t", str(iceberg))
    assert ctx.sql("SELECT count(*) AS n FROM t").collect() == [{"n": 20}]


@pytest.mark.parametrize("damage", [zeros, half, nothing])
@pytest.mark.parametrize("pattern", ["*.json", "*.checkpoint.parquet", "_last_checkpoint"])
def test_delta_metadata(tmp_path: Path, pattern: str, damage: Callable[[bytes], bytes]):
    path = tmp_path / "t"
    write_deltalake(str(path), ROWS, partition_by=["p"])
    log = path / "_delta_log"
    if pattern != "*.json":
        DeltaTable(str(path)).create_checkpoint()
        for file in log.glob("*.json"):
            file.unlink()
    (file,) = log.glob(pattern)
    file.write_bytes(damage(file.read_bytes()))
    ctx = kq.ExecutionContext()
    try:
        ctx.register_delta("t", str(path))
    except SourceError as error:
        assert str(path) in str(error)
    else:  # only a hint where the checkpoint is, which the directory's listing says, too
        assert pattern == "_last_checkpoint"
        assert ctx.sql("SELECT count(*) AS n FROM t").collect() == [{"n": 20}]


class TestErrorsOfPackages:
    def test_of_any_class_name_the_table(self):
        with (
            pytest.raises(SourceError, match=r"^the table t cannot be read: KeyError: 'a b'$"),
            as_source_errors("the table t cannot be read"),
        ):
            raise KeyError("a\n   b".replace("\n   ", " "))

    def test_of_rust_code_that_panics(self):
        panic = type("PanicException", (BaseException,), {})
        with (
            pytest.raises(SourceError, match="t cannot be read: PanicException: why"),
            as_source_errors("t cannot be read"),
        ):
            raise panic("why")

    def test_interrupts_are_not_errors_of_metadata(self):
        with pytest.raises(KeyboardInterrupt), as_source_errors("t cannot be read"):
            raise KeyboardInterrupt

    def test_reasons_stay_as_they_are(self):
        with (
            pytest.raises(SourceError, match=r"^t cannot be read: x is y$"),
            as_source_errors("t cannot be read"),
        ):
            raise Unsupported("x is y")
        with pytest.raises(SourceError, match=r"^z$"), as_source_errors("t cannot be read"):
            raise SourceError("z")
