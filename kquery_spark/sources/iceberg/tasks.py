"""What an Iceberg scan plans to read, in the JSON that Iceberg itself writes of schemas, specs and scan tasks.

Iceberg's specification, appendix C ("JSON serialization"), and ``ScanTaskParser`` of its Java library.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kquery_spark.errors import Unsupported
from kquery_spark.sources.iceberg.features import (
    ENCRYPTED,
    EQUALITY_COLUMN,
    METADATA_TABLES,
    OTHER_DELETE_FILES,
    OTHER_FILES,
)

_POSITION_DELETES, _EQUALITY_DELETES = "position-deletes", "equality-deletes"
_PUFFIN, _PARQUET = "puffin", "parquet"
_FILE_TASK = "file-scan-task"
_PARQUET_HEADER_BYTES = 4
# Iceberg's specification, "Reserved Field IDs"
_LAST_FIELD_ID = 2147483447  # higher ids belong to metadata columns
_FILE_ID, _SPEC_ID = 2147483646, 2147483643
POSITION_ID = 2147483645
"""The field id of ``_pos``, the position of a row in its data file."""


@dataclass(frozen=True)
class Field:
    """A field of a schema. nested: of a struct its fields, of a list its element, of a map its key and value.

    kind: the name of the type, ``struct``, ``list`` or ``map`` for nested ones. default: of rows of files that were written
    before the field was added (``initial-default``); None where it is NULL.
    """

    id: int
    name: str
    kind: str
    nested: tuple[Field, ...] = ()
    default: Any = None

    @property
    def is_readable(self) -> bool:
        """Whether the engine reads it: a column of the table, or a metadata column that planned files are enough for."""
        return self.id <= _LAST_FIELD_ID or self.id in (_FILE_ID, _SPEC_ID, POSITION_ID)


@dataclass(frozen=True)
class DeleteFile:
    """A file that says which rows of data files are deleted.

    rows: as many as it has. offset, nbytes: where in the file the deletion vector of one data file is, None for a Parquet
    file. keys: the fields of a file of deleted values; a file of paths and positions has none.
    """

    path: str
    size: int
    rows: int
    offset: int | None = None
    nbytes: int | None = None
    keys: tuple[Field, ...] = ()


@dataclass(frozen=True)
class PlannedFile:
    """A data file that the scan reads as a whole. constants: values of columns by field id, in JSON, from its partition,
    and those of the columns that are about the file.

    deletes: of its rows by their positions. equality_deletes: by their values.
    """

    path: str
    size: int
    constants: Mapping[int, Any] = field(default_factory=dict)
    deletes: tuple[DeleteFile, ...] = ()
    equality_deletes: tuple[DeleteFile, ...] = ()


def read_schema(text: str) -> tuple[Field, ...]:
    """The fields of a schema."""
    return tuple(map(_field, json.loads(text)["fields"]))


def _field(given: Mapping[str, Any]) -> Field:
    kind, nested = _type(given["type"])
    return Field(given["id"], given["name"], kind, nested, given.get("initial-default"))


def _type(given: Any) -> tuple[str, tuple[Field, ...]]:
    if not isinstance(given, dict):
        return given, ()
    if given["type"] == "struct":
        return "struct", tuple(map(_field, given["fields"]))
    if given["type"] == "list":
        return "list", (_part("element", given["element-id"], given["element"]),)
    parts = ("key", "value")
    return "map", tuple(_part(part, given[f"{part}-id"], given[part]) for part in parts)


def _part(name: str, field_id: int, given: Any) -> Field:
    return Field(field_id, name, *_type(given))


def read_tasks(strings: Iterable[str]) -> list[PlannedFile]:
    """The data files of scan tasks; Unsupported for what the engine does not read.

    A file may be cut into several tasks. Scans read whole files: what rows need not be read is left to filters.
    """
    tasks_by_path: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for text in strings:
        task = json.loads(text)
        if task.get("task-type", _FILE_TASK) != _FILE_TASK:
            raise METADATA_TABLES.declined()
        tasks_by_path[task["data-file"]["file-path"]].append(task)
    return [_data_file(tasks) for tasks in tasks_by_path.values()]


def _data_file(tasks: Sequence[Mapping[str, Any]]) -> PlannedFile:
    first = tasks[0]
    file = first["data-file"]
    path, size = file["file-path"], file["file-size-in-bytes"]
    if file["file-format"].lower() != _PARQUET:
        raise OTHER_FILES.declined(kind=file["file-format"].upper())
    if "key-metadata" in file:
        raise ENCRYPTED.declined()
    _check_whole(path, size, sorted((task["start"], task["length"]) for task in tasks))
    deletes = [_delete_file(given, first) for given in first.get("delete-files", ())]
    about_file = {_FILE_ID: path, _SPEC_ID: first["spec"]["spec-id"]}
    return PlannedFile(
        path,
        size,
        _constants(first["spec"], file.get("partition", {})) | about_file,
        tuple(delete for delete in deletes if not delete.keys),
        tuple(delete for delete in deletes if delete.keys),
    )


def _check_whole(path: str, size: int, ranges: Sequence[tuple[int, int]]) -> None:
    """Raise Unsupported if ranges of bytes, each its start and length, are not all of a file."""
    at = ranges[0][0]
    for start, length in ranges:
        if start != at:
            break
        at += length
    else:
        if ranges[0][0] <= _PARQUET_HEADER_BYTES and at == size:
            return
    raise Unsupported(f"Spark reads a part of {path} only")


def _constants(spec: Mapping[str, Any], partition: Mapping[str, Any] | list[Any]) -> dict[int, Any]:
    """The partition's values of columns that it takes as they are, by the column's field id."""
    fields = spec["fields"]
    if isinstance(partition, list):  # since Iceberg 1.11; before, by the fields' ids
        values = dict(zip((f["field-id"] for f in fields), partition, strict=True))
    else:
        values = {f["field-id"]: partition.get(str(f["field-id"])) for f in fields}
    return {f["source-id"]: values[f["field-id"]] for f in fields if f["transform"] == "identity"}


def _delete_file(given: Mapping[str, Any], task: Mapping[str, Any]) -> DeleteFile:
    kind, file_format = given["content"].lower().replace("_", "-"), given["file-format"].lower()
    path, size, rows = given["file-path"], given["file-size-in-bytes"], given["record-count"]
    if kind not in (_POSITION_DELETES, _EQUALITY_DELETES):
        raise Unsupported(f"{kind} of Iceberg tables are read by Spark")
    if file_format == _PUFFIN:
        return DeleteFile(path, size, rows, given["content-offset"], given["content-size-in-bytes"])
    if file_format != _PARQUET:
        raise OTHER_DELETE_FILES.declined(kind=file_format.upper())
    if "key-metadata" in given:
        raise ENCRYPTED.declined()
    if kind == _EQUALITY_DELETES:
        return DeleteFile(path, size, rows, keys=_keys(given["equality-ids"], task["schema"]))
    return DeleteFile(path, size, rows)


def _keys(ids: Sequence[int], schema: Mapping[str, Any]) -> tuple[Field, ...]:
    """Fields of a schema; Unsupported for one that it no longer has, or has inside of a column."""
    by_id = {given["id"]: given for given in schema["fields"]}
    if not by_id.keys() >= set(ids):
        raise EQUALITY_COLUMN.declined()
    return tuple(_field(by_id[field_id]) for field_id in ids)
