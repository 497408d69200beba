"""The key columns of Iceberg's equality deletes: the columns whose values decide which rows are deleted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import pyarrow as pa

from kquery_spark.sources.iceberg.features import EQUALITY_TYPE, MANY_EQUALITY_DELETES
from kquery_spark.sources.iceberg.primitive_types import primitive_type
from kquery_spark.sources.iceberg.tasks import DeleteFile, Field, PlannedFile

_MAX_VALUES = 20_000_000  # rows of all delete files together; a task may have most of them in memory
# Floats have several representations of one value: Iceberg distinguishes zeros and NaNs that Spark does not.
_FLOATS = ("float", "double")


def equality_deletes(files: Iterable[PlannedFile]) -> list[DeleteFile]:
    """The equality delete files that apply to any of the data files, without duplicates.

    Raises Unsupported if they have too many rows, or key columns of an unsupported type.
    """
    deletes = {delete.path: delete for file in files for delete in file.equality_deletes}
    count = sum(delete.rows for delete in deletes.values())
    if count > _MAX_VALUES:
        raise MANY_EQUALITY_DELETES.declined(count=count)
    for delete in deletes.values():
        for key in delete.keys:
            _key_type(key)
    return list(deletes.values())


def further_keys(
    deletes: Iterable[DeleteFile], fields: Sequence[Field], names: Collection[str]
) -> list[tuple[pa.Field, Field]]:
    """The key columns that the query does not read (that are not in ``fields``), with names that are not in ``names``."""
    known = {field.id for field in fields}
    keys = {key.id: key for delete in deletes for key in delete.keys if key.id not in known}
    columns = []
    for key in keys.values():
        name = f"key {key.id}"
        while name in names:
            name += "_"
        columns.append((pa.field(name, _key_type(key)), key))
    return columns


def _key_type(key: Field) -> pa.DataType:
    dtype = None if key.kind in _FLOATS else primitive_type(key.kind, "UTC")
    if dtype is None:
        raise EQUALITY_TYPE.declined(column=key.name, kind=key.kind)
    return dtype
