"""Delta and Iceberg: tables of several versions, whose metadata and deletion vectors are damaged."""

from __future__ import annotations

import datetime as dt
import json
import struct
import zlib
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.sources.mutations.formats import MutatedFormat, Mutation, Pristine
from tests.sources.mutations.mutate import Region, mutated

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kquery_spark import ExecutionContext

_QUERIES = (
    "SELECT * FROM t",
    "SELECT p, count(*) FROM t WHERE id > 20 GROUP BY p",
)
_ROWS = pa.table(
    {
        "id": range(100),
        "p": [f"a b/%{i % 3}" for i in range(100)],
        "day": [None if i % 4 == 0 else dt.date(2020, 1, 1 + i % 3) for i in range(100)],
    }
)
_MAGIC = struct.pack("<I", 1681511377)


def _mutate(data: bytes, file: Path, rng: Random) -> Mutation:
    return mutated(data, [Region("metadata", 0, len(data))], rng)


def _make_delta(directory: Path) -> list[Pristine]:
    """In a process of its own, as deltalake refuses to work in forks of a process that used it."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_delta_tables, directory).result()


def _delta_tables(directory: Path) -> list[Pristine]:
    return [
        _delta_log(directory / "log"),
        _delta_checkpoint(directory / "checkpoint"),
        _delta_vectors(directory),
    ]


def _delta_log(root: Path) -> Pristine:
    """A table whose versions are in JSON files."""
    from deltalake import DeltaTable, write_deltalake

    write_deltalake(str(root), _ROWS, partition_by=["p", "day"])
    DeltaTable(str(root)).delete("id < 10")
    write_deltalake(str(root), _ROWS.slice(0, 5), mode="append")
    return Pristine(root.name, root, tuple(sorted((root / "_delta_log").glob("*.json"))), _QUERIES)


def _delta_checkpoint(root: Path) -> Pristine:
    """A table whose last version is in a checkpoint."""
    from deltalake import DeltaTable, write_deltalake

    for start in range(0, 100, 25):
        write_deltalake(str(root), _ROWS.slice(start, 25), mode="append", partition_by=["p"])
    DeltaTable(str(root)).create_checkpoint()
    log = root / "_delta_log"
    for old in sorted(log.glob("*.json")):
        old.unlink()
    return Pristine(root.name, root, tuple(f for f in sorted(log.iterdir()) if f.is_file()), _QUERIES)


def _delta_vectors(directory: Path) -> Pristine:
    """A table with a file whose rows are partly deleted by a deletion vector in a file."""
    from deltalake import write_deltalake
    from pyroaring import BitMap64

    root = directory / "vectors"
    write_deltalake(str(root), _ROWS)
    vector = _MAGIC + BitMap64([*range(0, 40, 3), 77]).serialize()
    framed = b"\x01" + struct.pack(">I", len(vector)) + vector + struct.pack(">I", zlib.crc32(vector))
    stored = root / "deleted.bin"
    stored.write_bytes(framed)
    log = root / "_delta_log"
    actions = [json.loads(line) for line in (log / f"{0:020}.json").read_text().splitlines()]
    add = next(action["add"] for action in actions if "add" in action)
    described = {
        "storageType": "p",
        "pathOrInlineDv": stored.as_uri(),
        "offset": 1,
        "sizeInBytes": len(vector),
        "cardinality": 15,
    }
    features: dict[str, Any] = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    changes = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
        {"remove": {"path": add["path"], "dataChange": True, "deletionTimestamp": 1}},
        {"add": {**add, "deletionVector": described}},
    ]
    (log / f"{1:020}.json").write_text("\n".join(map(json.dumps, changes)))
    return Pristine(root.name, root, (stored, log / f"{1:020}.json"), _QUERIES)


def _register_delta(context: ExecutionContext, root: Path) -> None:
    context.register_delta("t", str(root))


def _delta_frame(spark: SparkSession, root: Path) -> DataFrame:
    return spark.read.format("delta").load(str(root))


def _make_iceberg(directory: Path) -> list[Pristine]:
    from pyiceberg.catalog.sql import SqlCatalog

    warehouse = directory / "warehouse"
    warehouse.mkdir(parents=True)
    catalog = SqlCatalog("c", uri=f"sqlite:///{directory}/catalog.db", warehouse=f"file://{warehouse}")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", _ROWS.schema)
    with table.update_spec() as update:
        update.add_identity("p")
    table.append(_ROWS)
    table.append(_ROWS.slice(0, 5))
    location = Path(table.metadata_location.removeprefix("file://"))
    metadata = sorted(file for file in location.parent.iterdir() if file.suffix == ".avro")
    return [Pristine("t", location.parent.parent, (location, *metadata), _QUERIES)]


def _register_iceberg(context: ExecutionContext, root: Path) -> None:
    latest = max((root / "metadata").glob("*.metadata.json"))
    context.register_iceberg("t", str(latest))


def _iceberg_frame(spark: SparkSession, root: Path) -> DataFrame:
    latest = max((root / "metadata").glob("*.metadata.json"))
    return spark.read.format("iceberg").load(str(latest))


DELTA = MutatedFormat("delta", _make_delta, _mutate, _register_delta, _delta_frame)
ICEBERG = MutatedFormat("iceberg", _make_iceberg, _mutate, _register_iceberg, _iceberg_frame)
