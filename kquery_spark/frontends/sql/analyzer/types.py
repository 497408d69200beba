"""Converts SQL data types to Arrow types."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.frontends.sql.ast import types as ast
from kquery_spark.frontends.sql.printer import to_sql
from kquery_spark.types import names as t

_PLAIN = {
    "boolean": t.BOOL,
    "tinyint": t.BYTE,
    "smallint": t.SHORT,
    "int": t.INT,
    "bigint": t.LONG,
    "float": t.FLOAT,
    "double": t.DOUBLE,
    "string": t.STRING,
    "varchar": t.STRING,
    "char": t.STRING,
    "binary": t.BINARY,
    "date": t.DATE,
    "timestamp_ntz": t.TIMESTAMP_NTZ,
    "void": t.NULL,
}


def supported_type(node: ast.TypeNode, time_zone: str, subject: str = "the type") -> pa.DataType:
    """Return the Arrow type of a SQL type. Raises Unsupported if there is none; the message begins with ``subject``."""
    dtype = arrow_type(node, time_zone)
    if dtype is None:
        raise Unsupported(f"{subject} {to_sql(node)} is not supported")
    return dtype


def arrow_type(node: ast.TypeNode, time_zone: str) -> pa.DataType | None:
    """The Arrow type of a SQL type; None if the engine does not support it.

    A cast to ``varchar(n)`` or ``char(n)`` is a cast to string in Spark.
    """
    match node:
        case ast.NamedType():
            return _plain_type(node, time_zone)
        case ast.ArrayType():
            element = arrow_type(node.element, time_zone)
            return None if element is None else pa.list_(element)
        case ast.MapType():
            key, value = arrow_type(node.key, time_zone), arrow_type(node.value, time_zone)
            return None if key is None or value is None else pa.map_(key, value)
        case ast.StructType():
            return _struct_type(node, time_zone)
        case ast.IntervalType(start="DAY", end="SECOND"):  # a cast to fewer fields changes values
            return t.DAY_TIME
    return None


def _plain_type(node: ast.NamedType, time_zone: str) -> pa.DataType | None:
    if node.name == "decimal" and len(node.parameters) == 2:
        return t.decimal(*node.parameters)
    return t.timestamp(time_zone) if node.name == "timestamp" else _PLAIN.get(node.name)


def _struct_type(node: ast.StructType, time_zone: str) -> pa.DataType | None:
    fields = []
    for field in node.fields:
        dtype = arrow_type(field.type, time_zone)
        if dtype is None:
            return None
        fields.append(pa.field(field.name, dtype, field.nullable))
    return pa.struct(fields)
