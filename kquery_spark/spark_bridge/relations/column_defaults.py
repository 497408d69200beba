"""Reads existence defaults: the values of a column that was added to a catalog table, for rows in older files.

Spark stores the default of ``ALTER TABLE t ADD COLUMN c INT DEFAULT 5`` in the column's metadata, as the SQL of a literal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.functions.casts.temporal import parse_timestamp
from kquery_spark.sources.file_features import DEFAULT_OF_TYPE, WIDE_DEFAULT
from kquery_spark.sources.partitions import plain_value
from kquery_spark.spark_bridge.jvm.calls import Jvm
from kquery_spark.spark_bridge.plan.literal_values import from_text, scalar
from kquery_spark.types import decimals
from kquery_spark.types import names as t

_KEY = "EXISTS_DEFAULT"
_RESOLVER = "org.apache.spark.sql.catalyst.util.ResolveDefaultColumns"
_ROW = "org.apache.spark.sql.catalyst.expressions.GenericInternalRow"
_TIMESTAMP = re.compile(r"TIMESTAMP(?:_LTZ)? '([^']*)'")


def existence_defaults(
    struct: Any, columns: Sequence[Any], fields: pa.Schema, jvm: Jvm
) -> tuple[dict[str, Any], dict[str, str]]:
    """The plain values of column defaults, and the fallback reasons for columns whose defaults the engine cannot read.

    struct: the relation's StructType. columns: its JSON. fields: the columns that have a type in the engine.
    """
    if not any(_KEY in str(column) for column in columns):
        return {}, {}
    row = jvm.new(_ROW, jvm.call(_RESOLVER, "getExistenceDefaultValues", struct))
    rows = jvm.sequence([row]).toIndexedSeq()
    defaults: dict[str, Any] = {}
    unread: dict[str, str] = {}
    for position, column in enumerate(columns):
        name = column["name"]
        if _KEY in str(column["type"]):
            unread[name] = f"the defaults of fields inside {name} are not supported"
        if _KEY not in (column.get("metadata") or {}) or name not in fields.names or row.isNullAt(position):
            continue
        try:
            defaults[name] = _default(rows, position, column, fields.field(name).type, jvm)
        except Unsupported as error:
            unread[name] = error.reason
    return defaults, unread


def _default(rows: Any, position: int, column: Any, dtype: pa.DataType, jvm: Jvm) -> Any:
    """The plain value of a column's default."""
    # parsed here, because the JVM would use the time zone of the calling thread instead of the session's
    if t.is_timestamp(dtype):
        match = _TIMESTAMP.fullmatch(column["metadata"][_KEY])
        instant = None if match is None else parse_timestamp(match[1], dtype.tz)
        if instant is None:
            raise Unsupported(f"the default of {column['name']} is not a supported literal")
        return instant
    # Spark's vectorized readers fill in no wider decimals
    if t.is_decimal(dtype) and not decimals.is_narrow(dtype):
        raise WIDE_DEFAULT.declined(column=column["name"])
    if pa.types.is_nested(dtype) or pa.types.is_binary(dtype):
        raise DEFAULT_OF_TYPE.declined(column=column["name"], type=t.spark_name(dtype))
    (text,) = jvm.column_strings(rows, position, column["type"])
    assert text is not None
    return plain_value(scalar(from_text(text, dtype), dtype))
