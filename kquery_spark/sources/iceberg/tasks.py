"""Parses the plan of an Iceberg scan: the JSON of schemas, partition specs and scan tasks that Iceberg itself writes.

See appendix C ("JSON serialization") of Iceberg's specification, and ``ScanTaskParser`` of its Java library.
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
    """A field of a schema.

    kind: the name of the type, which is ``struct``, ``list`` or ``map`` for nested types. nested: the fields of a struct,
    the element of a list, or the key and value of a map. default: the value in files that were written before the field was
    added (``initial-default``); None for NULL. required: True if the field cannot be NULL.
    """

    id: int
    name: str
    kind: str
    nested: tuple[Field, ...] = ()
    default: Any = None
    required: bool = False

    @property
    def is_readable(self) -> bool:
        """True for columns of the table, and for metadata columns that follow from the planned files."""
        return self.id <= _LAST_FIELD_ID or self.id in (_FILE_ID, _SPEC_ID, POSITION_ID)


@dataclass(frozen=True)
class DeleteFile:
    """A delete file.

    rows: the number of its rows. offset, nbytes: the position of one data file's deletion vector in the file; None for a
    Parquet file. keys: the key columns of an equality delete file; empty for position deletes.
    """

    path: str
    size: int
    rows: int
    offset: int | None = None
    nbytes: int | None = None
    keys: tuple[Field, ...] = ()


@dataclass(frozen=True)
class PlannedFile:
    """A data file that the scan reads as a whole.

    constants: JSON values by field id, for identity partition columns and for metadata columns such as ``_file``. deletes:
    the position deletes or deletion vector that apply to the file. equality_deletes: the equality deletes that apply.
    """

    path: str
    size: int
    constants: Mapping[int, Any] = field(default_factory=dict)
    deletes: tuple[DeleteFile, ...] = ()
    equality_deletes: tuple[DeleteFile, ...] = ()


def read_schema(text: str) -> tuple[Field, ...]:
    """Parse the fields of a schema."""
    return tuple(map(_field, json.loads(text)["fields"]))


def _field(given: Mapping[str, Any]) -> Field:
    kind, nested = _type(given["type"])
    default, required = given.get("initial-default"), given.get("required", False)
    return Field(given["id"], given["name"], kind, nested, default, required)


def _type(given: Any) -> tuple[str, tuple[Field, ...]]:
    if not isinstance(given, dict):
        return given, ()
    if given["type"] == "struct":
        return "struct", tuple(map(_field, given["fields"]))
    if given["type"] == "list":
        return "list", (_part("element", given),)
    return "map", (_part("key", given), _part("value", given))


def _part(name: str, given: Mapping[str, Any]) -> Field:
    """Parse the element of a list, or the key or value of a map. Keys cannot be NULL."""
    kind, nested = _type(given[name])
    required = given.get(f"{name}-required", name == "key")
    return Field(given[f"{name}-id"], name, kind, nested, required=required)


def read_tasks(strings: Iterable[str]) -> list[PlannedFile]:
    """Parse scan tasks into data files; raises Unsupported for features that the engine does not read.

    Iceberg may divide a file into several tasks. The engine reads whole files and prunes row groups itself.
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
    """Raise Unsupported unless the byte ranges (start and length, sorted) together cover the whole file."""
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
    """The partition values of columns with the identity transform, by the column's field id."""
    fields = spec["fields"]
    if isinstance(
        partition, list
    ):  # since Iceberg 1.11; earlier releases write an object with field ids as names
        values = dict(zip((f["field-id"] for f in fields), partition, strict=True))
    else:
        values = {f["field-id"]: partition.get(str(f["field-id"])) for f in fields}
    return {f["source-id"]: values[f["field-id"]] for f in fields if f["transform"] == "identity"}


def _delete_file(given: Mapping[str, Any], task: Mapping[str, Any]) -> DeleteFile:
    kind, file_format = given["content"].lower().replace("_", "-"), given["file-format"].lower()
    path, size, rows = given["file-path"], given["file-size-in-bytes"], given["record-count"]
    if kind not in (_POSITION_DELETES, _EQUALITY_DELETES):
        raise Unsupported(f"{kind} of Iceberg tables are not supported")
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
    """The key columns with these ids; Unsupported for a column that was dropped, or that is nested in another one."""
    by_id = {given["id"]: given for given in schema["fields"]}
    if not by_id.keys() >= set(ids):
        raise EQUALITY_COLUMN.declined()
    return tuple(_field(by_id[field_id]) for field_id in ids)
