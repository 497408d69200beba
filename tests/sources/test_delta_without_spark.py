"""Delta tables in a context without Spark, which the deltalake package writes and describes."""

from __future__ import annotations

import datetime
import json
import os
import re
import struct
import sys
import zlib
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyroaring import BitMap64

import kquery_spark as kq
from kquery_spark.errors import SourceError
from tests.support.s3 import new_bucket, s3_server, storage_options

ROWS = pa.table(
    {
        "id": range(100),
        "p": [f"a b/%{i % 3}" for i in range(100)],
        "day": [None if i % 4 == 0 else datetime.date(2020, 1, 1 + i % 3) for i in range(100)],
        "m": pa.array([Decimal(i) / 4 for i in range(100)], pa.decimal128(9, 2)),
    }
)


def rows(ctx: kq.ExecutionContext, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in ctx.sql(sql).collect()]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A table of three versions: 100 rows, without 10 of them, with 5 others."""
    path = str(tmp_path / "t a")
    write_deltalake(path, ROWS, partition_by=["p", "day"])
    DeltaTable(path).delete("id < 10")
    write_deltalake(path, ROWS.slice(0, 5), mode="append")
    return path


def test_versions_and_partitions(path: str) -> None:
    ctx = kq.ExecutionContext()
    for version, count in ((0, 100), (1, 90), (2, 95), (None, 95)):
        ctx.register_delta("t", path, version)
        assert rows(ctx, "SELECT count(*) FROM t") == [(count,)]
    by_partition = rows(
        ctx, "SELECT p, day, count(*), sum(m) FROM t WHERE id >= 10 GROUP BY p, day ORDER BY p, day"
    )
    expected: dict[tuple[Any, Any], list[Any]] = {}
    for row in ROWS.slice(10).to_pylist():
        count = expected.setdefault((row["p"], row["day"]), [0, Decimal(0)])
        count[0] += 1
        count[1] += row["m"]
    assert {(p, day): [n, m] for p, day, n, m in by_partition} == expected


def test_columns_are_those_of_the_log(path: str) -> None:
    ctx = kq.ExecutionContext()
    ctx.register_delta("t", path)
    assert ctx.sql("SELECT * FROM t").to_arrow().schema.names == ["id", "p", "day", "m"]
    assert ctx.table("t").schema.field("m").type == pa.decimal128(9, 2)


def test_on_s3() -> None:
    with s3_server() as endpoint:
        new_bucket(endpoint, "delta-of-tests")
        options = storage_options(endpoint)
        written = {**options, "aws_allow_http": "true", "aws_s3_allow_unsafe_rename": "true"}
        write_deltalake("s3://delta-of-tests/t", ROWS, storage_options=written)
        ctx = kq.ExecutionContext()
        ctx.register_delta("t", "s3a://delta-of-tests/t", storage_options=options)
        assert rows(ctx, "SELECT count(*), sum(id) FROM t") == [(100, 4950)]


@pytest.fixture
def deleted(tmp_path: Path) -> Path:
    """A table of 10 rows. A deletion vector deletes the first two."""
    directory = tmp_path / "t #1"
    write_deltalake(str(directory), ROWS.slice(0, 10).select(["id"]))
    log = directory / "_delta_log"
    actions = [json.loads(line) for line in (log / f"{0:020}.json").read_text().splitlines()]
    add = next(action["add"] for action in actions if "add" in action)
    vector = struct.pack("<I", 1681511377) + BitMap64([0, 1]).serialize()
    stored = tmp_path / "deleted.bin"
    stored.write_bytes(
        b"\x01" + struct.pack(">I", len(vector)) + vector + struct.pack(">I", zlib.crc32(vector))
    )
    described = {
        "storageType": "p",
        "pathOrInlineDv": stored.as_uri(),
        "offset": 1,
        "sizeInBytes": len(vector),
        "cardinality": 2,
    }
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    changes = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
        {"remove": {"path": add["path"], "dataChange": True, "deletionTimestamp": 1}},
        {"add": {**add, "deletionVector": described}},
    ]
    (log / f"{1:020}.json").write_text("\n".join(map(json.dumps, changes)))
    return directory


@pytest.mark.parametrize("kind", ["path", "relative", "file:", "file://", "link", "Path"])
def test_deletion_vectors_are_found_for_every_form_of_path(
    deleted: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(deleted.parent)
    path: str | Path = str(deleted)
    if kind == "relative":
        path = deleted.name
    elif kind == "link":
        os.symlink(deleted, deleted.parent / "link")
        path = str(deleted.parent / "link")
    elif kind == "Path":
        path = deleted
    elif kind != "path":
        path = f"{kind}{deleted}"
    ctx = kq.ExecutionContext()
    ctx.register_delta("t", path)
    monkeypatch.chdir("/")  # Spark's workers have other working directories
    assert rows(ctx, "SELECT count(*), min(id) FROM t") == [(8, 2)]


@pytest.mark.parametrize("name", ["%41", "x\\y"])
def test_paths_that_deltalake_resolves_differently_are_an_error(deleted: Path, name: str) -> None:
    other = deleted.rename(deleted.parent / name)
    with pytest.raises(SourceError, match="contains % or a backslash"):
        kq.ExecutionContext().register_delta("t", str(other))


def test_shallow_clones_with_files_in_another_directory(path: str, tmp_path: Path) -> None:
    """The log of a shallow clone names the files of the cloned table by URI."""
    clone = tmp_path / "clone"
    (clone / "_delta_log").mkdir(parents=True)
    actions = [
        json.loads(line) for line in (Path(path) / "_delta_log" / f"{0:020}.json").read_text().splitlines()
    ]
    for action in actions:
        if "add" in action:
            action["add"]["path"] = f"file:{quote(path)}/{action['add']['path']}"
    (clone / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    ctx = kq.ExecutionContext()
    ctx.register_delta("t", str(clone))
    assert rows(ctx, "SELECT count(*), sum(id) FROM t") == [(100, 4950)]


@pytest.mark.parametrize("zone", ["UTC", "GMT", "+00:00", "Europe/Berlin", "+02:00", "Europe/London"])
def test_partitions_by_timestamps_are_read_in_utc_only(tmp_path: Path, zone: str) -> None:
    """deltalake writes values without an offset, which Spark reads in its session's time zone."""
    at = datetime.datetime(2024, 7, 15, 16, tzinfo=datetime.timezone.utc)
    times = pa.table({"at": pa.array([at], pa.timestamp("us", "UTC")), "n": [1]})
    path = str(tmp_path / "t")
    write_deltalake(path, times, partition_by=["at"])
    ctx = kq.ExecutionContext(time_zone=zone)
    if zone in ("UTC", "GMT", "+00:00"):
        ctx.register_delta("t", path)
        assert rows(ctx, "SELECT hour(at), n FROM t") == [(16, 1)]
    else:
        with pytest.raises(SourceError, match="is partitioned by a timestamp, which is supported only in"):
            ctx.register_delta("t", path)


def test_partitions_by_timestamps_without_a_time_zone(tmp_path: Path) -> None:
    at = datetime.datetime(2024, 7, 15, 16)
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"at": [at], "n": [1]}), partition_by=["at"])
    ctx = kq.ExecutionContext(time_zone="Europe/Berlin")
    ctx.register_delta("t", path)
    assert rows(ctx, "SELECT hour(at), n FROM t") == [(16, 1)]


MAPPED = {"a": ("stored_a", 1), "b": ("stored_b", 2)}


def mapped_table(directory: Path, mode: str, ids: dict[str, int]) -> str:
    """A table with column mapping whose one file has these columns with these field ids."""
    (directory / "_delta_log").mkdir(parents=True)
    fields = [pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(i)}) for name, i in ids.items()]
    columns = [[10 * i + k for k in range(5)] for i in ids.values()]
    pq.write_table(pa.table(columns, schema=pa.schema(fields)), directory / "1.parquet")
    schema = [
        {
            "name": name,
            "type": "long",
            "nullable": True,
            "metadata": {"delta.columnMapping.physicalName": stored, "delta.columnMapping.id": number},
        }
        for name, (stored, number) in MAPPED.items()
    ]
    metadata = {
        "id": "t",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": schema}),
        "partitionColumns": [],
        "configuration": {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "2"},
    }
    size = (directory / "1.parquet").stat().st_size
    actions = [
        {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}},
        {"metaData": metadata},
        {
            "add": {
                "path": "1.parquet",
                "partitionValues": {},
                "size": size,
                "modificationTime": 1,
                "dataChange": True,
            }
        },
    ]
    (directory / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)))
    return str(directory)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_column_mapping(tmp_path: Path, mode: str) -> None:
    ctx = kq.ExecutionContext()
    ctx.register_delta("t", mapped_table(tmp_path, mode, {"stored_b": 2, "stored_a": 1}))
    assert rows(ctx, "SELECT sum(a), sum(b) FROM t") == [(60, 110)]


def test_files_whose_ids_are_those_of_other_columns_are_an_error(tmp_path: Path) -> None:
    path = mapped_table(tmp_path, "id", {"stored_a": 2, "stored_b": 1})
    with pytest.raises(SourceError, match=r"the field id of stored_a is that of another column"):
        kq.ExecutionContext().register_delta("t", path)


def test_padded_strings_are_declined(tmp_path: Path) -> None:
    """Spark pads the values of CHAR(n) columns and the literals that they are compared with; VARCHAR(n) has no effect."""
    for dtype in ("varchar(5)", "char(5)", "map<int,char(5)>"):
        path, metadata = str(tmp_path / dtype), {"__CHAR_VARCHAR_TYPE_STRING": dtype}
        kind = pa.map_(pa.int32(), pa.string()) if "map" in dtype else pa.string()
        data = pa.table({"c": pa.array([None], kind)})
        write_deltalake(path, data.cast(pa.schema([pa.field("c", kind, metadata=metadata)])))
        ctx = kq.ExecutionContext()
        if dtype == "varchar(5)":
            ctx.register_delta("t", path)
            assert rows(ctx, "SELECT c FROM t") == [(None,)]
        else:
            with pytest.raises(
                SourceError, match=f"its column c has the type {re.escape(dtype)}, whose values Spark pads"
            ):
                ctx.register_delta("t", path)


def test_what_is_no_table_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"cannot open the Delta table .*nothing"):
        kq.ExecutionContext().register_delta("t", str(tmp_path / "nothing"))


def test_a_version_that_is_not_there_is_an_error(path: str) -> None:
    with pytest.raises(SourceError, match="cannot open the Delta table"):
        kq.ExecutionContext().register_delta("t", path, 7)


def test_without_the_package_the_error_says_how_to_get_it(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(SourceError, match=r"pip install 'kquery-spark\[delta\]'"):
        kq.ExecutionContext().register_delta("t", path)
