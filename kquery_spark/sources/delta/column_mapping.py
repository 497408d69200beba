"""Column mapping of Delta tables: the names and field ids that a table's columns have in its files.

Columns and types are Spark's, in JSON, as Delta's log and Spark's schemas have them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NAME = "delta.columnMapping.physicalName"
_ID = "delta.columnMapping.id"
_PARQUET_ID = "parquet.field.id"
_UNMAPPED, _BY_NAME, _BY_ID = "none", "name", "id"
MODES = (_UNMAPPED, _BY_NAME, _BY_ID)
"""The values of ``delta.columnMapping.mode``."""

Column = Mapping[str, Any]


def stored_column(column: Column, mode: str) -> Column:
    """The column as the table's files have it: without mapping itself, else under its physical name.

    Files are read by field ids where the mode says so; with the mode "name" they are not, whatever ids they have.
    """
    if mode == _UNMAPPED:
        return column
    given = column.get("metadata") or {}
    metadata = {key: value for key, value in given.items() if key != _PARQUET_ID}
    if mode == _BY_ID:
        metadata[_PARQUET_ID] = given[_ID]
    return {**column, "name": given[_NAME], "type": _stored_type(column["type"], mode), "metadata": metadata}


def _stored_type(spark: Any, mode: str) -> Any:
    if not isinstance(spark, dict):
        return spark
    if spark["type"] == "struct":
        return {**spark, "fields": [stored_column(field, mode) for field in spark["fields"]]}
    parts = ("elementType", "keyType", "valueType")
    return {**spark, **{part: _stored_type(spark[part], mode) for part in parts if part in spark}}
