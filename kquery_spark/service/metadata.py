"""Answers Flight SQL's metadata commands with small tables whose columns the protocol defines.

A service has no catalogs or schemas. Both lists have one entry with an empty name, so clients use table names without a
prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import Message

import kquery_spark
from kquery_spark.context.execution_context import ExecutionContext
from kquery_spark.service import flight_sql_pb2 as pb

_TABLE_TYPE = "TABLE"

# The numbers are those of SqlInfo in Flight SQL's protocol.
_FACTS: dict[int, str | bool | int] = {
    0: "kquery_spark",
    1: kquery_spark.__version__,
    2: pa.__version__,
    3: True,  # read only
    4: True,  # SQL
    5: find_spec("substrait") is not None,  # Substrait
    8: 0,  # no transactions
    9: False,  # no separate call that cancels a query
    504: "`",  # the quote character of identifiers
}
# Name, Python type and Arrow type of the members of the protocol's union, in its order. No fact is a bigint, so its
# type ``float`` is a placeholder; ``int`` selects the 32-bit member.
_KINDS: tuple[tuple[str, type, pa.DataType], ...] = (
    ("string_value", str, pa.string()),
    ("bool_value", bool, pa.bool_()),
    ("bigint_value", float, pa.int64()),
    ("int32_bitmask", int, pa.int32()),
    ("string_list", list, pa.list_(pa.string())),
    ("int32_to_int32_list_map", dict, pa.map_(pa.int32(), pa.list_(pa.int32()))),
)


def _sql_info(context: ExecutionContext, command: Any) -> pa.Table:
    info_numbers = [n for n in command.info if n in _FACTS] if command.info else sorted(_FACTS)
    union = _union([_FACTS[n] for n in info_numbers])
    schema = pa.schema([pa.field("info_name", pa.uint32(), False), pa.field("value", union.type)])
    return pa.Table.from_arrays([pa.array(info_numbers, pa.uint32()), union], schema=schema)


def _union(values: Sequence[object]) -> pa.UnionArray:
    """Build a dense union of values of several kinds.

    It has one array per kind, and for each value its kind and its index in that kind's array.
    """
    number_of = {kind: i for i, (_, kind, _) in enumerate(_KINDS)}
    kinds = [number_of[type(v)] for v in values]
    children = [[v for v in values if type(v) is kind] for _, kind, _ in _KINDS]
    offsets = [kinds[:i].count(kind) for i, kind in enumerate(kinds)]
    return pa.UnionArray.from_dense(
        pa.array(kinds, pa.int8()),
        pa.array(offsets, pa.int32()),
        [pa.array(c, dtype) for c, (_, _, dtype) in zip(children, _KINDS, strict=True)],
        [name for name, _, _ in _KINDS],
    )


def _catalogs(context: ExecutionContext, command: Any) -> pa.Table:
    return pa.table([[""]], schema=pa.schema([pa.field("catalog_name", pa.string(), False)]))


def _schemas(context: ExecutionContext, command: Any) -> pa.Table:
    schema = pa.schema(
        [pa.field("catalog_name", pa.string()), pa.field("db_schema_name", pa.string(), False)]
    )
    rows = [""] if _nameless(command) else []
    return pa.table([pa.array(rows, pa.string())] * 2, schema=schema)


def _table_types(context: ExecutionContext, command: Any) -> pa.Table:
    return pa.table([[_TABLE_TYPE]], schema=pa.schema([pa.field("table_type", pa.string(), False)]))


def _tables(context: ExecutionContext, command: Any) -> pa.Table:
    matches = _nameless(command) and (not command.table_types or _TABLE_TYPE in command.table_types)
    names = pa.array(context.table_names() if matches else [], pa.string())
    if command.HasField("table_name_filter_pattern"):
        names = names.filter(pc.match_like(names, command.table_name_filter_pattern))
    nameless = pa.array([""] * len(names), pa.string())
    columns = [nameless, nameless, names, pa.array([_TABLE_TYPE] * len(names), pa.string())]
    fields = [
        pa.field("catalog_name", pa.string()),
        pa.field("db_schema_name", pa.string()),
        pa.field("table_name", pa.string(), False),
        pa.field("table_type", pa.string(), False),
    ]
    if command.include_schema:
        schemas = [context.table(n).schema.serialize().to_pybytes() for n in names.to_pylist()]
        columns.append(pa.array(schemas, pa.binary()))
        fields.append(pa.field("table_schema", pa.binary(), False))
    return pa.table(columns, schema=pa.schema(fields))


def _nameless(command: Any) -> bool:
    """Whether the command's filters include the one catalog and schema, which have no names."""
    pattern = command.db_schema_filter_pattern
    return not command.catalog and not pattern.strip("%")


#: By command name: the Protobuf message of the command, and the function that answers it.
TABLES: dict[str, tuple[type[Message], Callable[[ExecutionContext, Any], pa.Table]]] = {
    "CommandGetSqlInfo": (pb.CommandGetSqlInfo, _sql_info),
    "CommandGetCatalogs": (Empty, _catalogs),
    "CommandGetDbSchemas": (pb.CommandGetDbSchemas, _schemas),
    "CommandGetTableTypes": (Empty, _table_types),
    "CommandGetTables": (pb.CommandGetTables, _tables),
}
