"""Column mapping of Delta tables: the names and field ids that a table's columns have in its files.

Columns and types are in the JSON form of Spark's schemas, which Delta's log uses, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NAME = "delta.columnMapping.physicalName"
_ID = "delta.columnMapping.id"
_PARQUET_ID = "parquet.field.id"
UNMAPPED, _BY_NAME, _BY_ID = "none", "name", "id"
MODES = (UNMAPPED, _BY_NAME, _BY_ID)
"""The values of ``delta.columnMapping.mode``."""

Column = Mapping[str, Any]


def stored_column(column: Column, mapped: Column, mode: str) -> Column:
    """Translate a logical column into the column that is stored in the table's files, with its physical name.

    column: the part of the column that the query reads, which may lack fields of structs. mapped: the whole column, with the
    metadata of the mapping. mode: the mode "id" adds field ids to the result; the mode "name" ignores them.
    """
    given = mapped["metadata"]
    metadata = {key: value for key, value in given.items() if key != _PARQUET_ID}
    if mode == _BY_ID:
        metadata[_PARQUET_ID] = given[_ID]
    stored_type = _stored_type(column["type"], mapped["type"], mode)
    return {**column, "name": given[_NAME], "type": stored_type, "metadata": metadata}


def _stored_type(spark: Any, mapped: Any, mode: str) -> Any:
    if not isinstance(spark, dict):
        return spark
    if spark["type"] == "struct":
        by_name = {field["name"]: field for field in mapped["fields"]}
        fields = [stored_column(field, by_name[field["name"]], mode) for field in spark["fields"]]
        return {**spark, "fields": fields}
    parts = [part for part in ("elementType", "keyType", "valueType") if part in spark]
    return {**spark, **{part: _stored_type(spark[part], mapped[part], mode) for part in parts}}
