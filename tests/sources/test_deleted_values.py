"""Rows that are deleted by their values: NULL equals NULL, each file has its own deletes, whatever columns are read."""

from __future__ import annotations

import itertools
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kquery_spark.errors import Unsupported
from kquery_spark.sources.base import Source
from kquery_spark.sources.deletes.equality_deletes import EqualityDeletesView
from kquery_spark.sources.iceberg.source import iceberg_source
from kquery_spark.sources.iceberg.tasks import DeleteFile, Field, PlannedFile, read_tasks
from kquery_spark.stages.serialization import from_bytes, to_bytes

FIELDS = (Field(1, "a", "long"), Field(2, "b", "string"), Field(3, "c", "decimal(9, 2)"))
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.decimal128(9, 2))])
NUMBERS = itertools.count()


def file_of(directory: Path, rows: list[dict[str, Any]], columns: str = "abc") -> Path:
    """A Parquet file of some of the columns, with Iceberg's field ids."""
    path = directory / f"{next(NUMBERS)}.parquet"
    fields = [
        SCHEMA.field(f.name).with_metadata({"PARQUET:field_id": str(f.id)})
        for f in FIELDS
        if f.name in columns
    ]
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(fields)), path, row_group_size=3)
    return path


def deletes(directory: Path, keys: str, rows: list[dict[str, Any]]) -> DeleteFile:
    path = file_of(directory, rows, keys)
    return DeleteFile(
        str(path), path.stat().st_size, len(rows), keys=tuple(f for f in FIELDS if f.name in keys)
    )


def planned(path: Path, *equality_deletes: DeleteFile, **more: Any) -> PlannedFile:
    return PlannedFile(str(path), path.stat().st_size, equality_deletes=equality_deletes, **more)


def source(files: list[PlannedFile], columns: str = "abc") -> Source:
    fields = [f for f in FIELDS if f.name in columns]
    return iceberg_source(pa.schema([SCHEMA.field(f.name) for f in fields]), fields, files, lambda path: path)


def read(source: Source, columns: str) -> list[tuple[Any, ...]]:
    batches = [b.to_arrow() for split in source.splits() for b in source.read(split, list(columns))]
    return [row for b in batches for row in zip(*(c.to_pylist() for c in b.columns), strict=True)]


ROWS = [
    {"a": 1, "b": "x", "c": Decimal("1.50")},
    {"a": 2, "b": None, "c": Decimal("2.50")},
    {"a": None, "b": "x", "c": None},
    {"a": 2, "b": "y", "c": Decimal("2.50")},
    {"a": 4, "b": "y", "c": Decimal("-3.00")},
    {"a": None, "b": None, "c": None},
    {"a": 6, "b": "z", "c": Decimal("0.00")},
]


@pytest.mark.parametrize("columns", ["abc", "b", "ca", "a"])
@pytest.mark.parametrize(
    ("keys", "deleted"),
    [
        ("a", [{"a": 2}, {"a": 99}]),
        ("a", [{"a": None}]),
        ("b", [{"b": "x"}, {"b": None}]),
        ("c", [{"c": Decimal("2.50")}, {"c": None}]),
        ("ab", [{"a": 2, "b": None}, {"a": 4, "b": "x"}, {"a": None, "b": "x"}]),
        ("abc", [{"a": 2, "b": "y", "c": Decimal("2.50")}, {"a": 1, "b": "y", "c": Decimal("1.50")}]),
        ("abc", [{"a": None, "b": None, "c": None}]),
        ("a", []),
    ],
)
def test_rows_with_deleted_values_are_not_read(
    tmp_path: Path, columns: str, keys: str, deleted: list[dict[str, Any]]
) -> None:
    file = planned(file_of(tmp_path, ROWS), deletes(tmp_path, keys, deleted))
    left = [row for row in ROWS if {k: row[k] for k in keys} not in deleted]
    assert read(source([file], columns), columns) == [tuple(row[c] for c in columns) for row in left]


def test_no_columns(tmp_path: Path) -> None:
    counted = source([planned(file_of(tmp_path, ROWS), deletes(tmp_path, "b", [{"b": "y"}]))], "")
    batches = [batch for split in counted.splits() for batch in counted.read(split, [])]
    assert sum(batch.num_rows for batch in batches) == 5
    assert counted.row_count() is None


def test_each_file_has_deletes_of_its_own(tmp_path: Path) -> None:
    first, second = deletes(tmp_path, "a", [{"a": 1}, {"a": 2}]), deletes(tmp_path, "b", [{"b": "z"}])
    files = [
        planned(file_of(tmp_path, ROWS[:5]), first, second),
        planned(file_of(tmp_path, ROWS[3:]), second),
        planned(file_of(tmp_path, ROWS[:2])),
    ]
    table = source(files)
    assert [a for (a,) in read(table, "a")] == [None, 4, 2, 4, None, 1, 2]
    with_deletes, without = table.splits()[0], table.splits()[-1]
    assert table.ranges(with_deletes, "a").nulls is None and table.ranges(without, "a").nulls == 0
    assert (table.ranges(with_deletes, "a").low, table.ranges(with_deletes, "a").high) == (1, 2)


def test_columns_that_a_file_lacks_or_names_otherwise(tmp_path: Path) -> None:
    """The key is NULL in the file without the column, and the value of the partition where the table says so."""
    gone = deletes(tmp_path, "b", [{"b": None}, {"b": "p"}])
    named = file_of(tmp_path, ROWS)
    lacking = file_of(tmp_path, ROWS, "ac")
    files = [planned(named, gone), planned(lacking, gone), planned(lacking, gone, constants={2: "q"})]
    assert [a for (a,) in read(source(files, "a"), "a")] == [
        *[row["a"] for row in ROWS if row["b"] is not None],
        *[row["a"] for row in ROWS],
    ]


def test_what_decides_of_the_deletes_is_in_a_plan(tmp_path: Path) -> None:
    table = source([planned(file_of(tmp_path, ROWS), deletes(tmp_path, "b", [{"b": "y"}]))], "a")
    assert isinstance(table, EqualityDeletesView)
    assert read(from_bytes(to_bytes(table), Source), "a") == read(table, "a")


@pytest.mark.parametrize("kind", ["double", "float", "uuid", "time", "fixed[4]"])
def test_types_without_one_form_of_equal_values_are_sparks(tmp_path: Path, kind: str) -> None:
    path = file_of(tmp_path, ROWS)
    delete = DeleteFile(str(path), 1, 1, keys=(Field(9, "k", kind),))
    with pytest.raises(Unsupported, match="equality deletes by k, a"):
        source([planned(path, delete)])


def test_too_many_values_are_sparks(tmp_path: Path) -> None:
    path = file_of(tmp_path, ROWS)
    delete = DeleteFile(str(path), 1, 30_000_000, keys=FIELDS[:1])
    with pytest.raises(Unsupported, match="30,000,000 values"):
        source([planned(path, delete)])


@pytest.mark.parametrize(("field_id", "known"), [(1, True), (9, False), (3, False)])
def test_the_columns_of_deletes_are_those_of_the_table(field_id: int, known: bool) -> None:
    """Not one that was dropped, nor one inside of a column."""
    nested = '{"id": 2, "name": "st", "type": {"type": "struct", "fields": [{"id": 3, "name": "x", "type": "int"}]}}'
    schema = f'{{"type": "struct", "fields": [{{"id": 1, "name": "a", "type": "long"}}, {nested}]}}'
    delete = (
        f'{{"content": "equality-deletes", "file-format": "parquet", "file-path": "/d", "file-size-in-bytes": 9,'
        f' "record-count": 1, "equality-ids": [{field_id}]}}'
    )
    file = '{"file-path": "/f", "file-size-in-bytes": 100, "file-format": "parquet"}'
    task = (
        f'{{"schema": {schema}, "spec": {{"spec-id": 0, "fields": []}}, "data-file": {file}, "start": 4, "length": 96,'
        f' "delete-files": [{delete}]}}'
    )
    if known:
        (planned_file,) = read_tasks([task])
        assert planned_file.equality_deletes == (DeleteFile("/d", 9, 1, keys=(Field(1, "a", "long"),)),)
        return
    with pytest.raises(Unsupported, match="a column that the table no longer has"):
        read_tasks([task])
