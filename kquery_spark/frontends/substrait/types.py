"""Translates types between Substrait and the engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from kquery_spark.errors import SubstraitError
from kquery_spark.frontends.substrait.messages import Message, kind_of, proto
from kquery_spark.types import names as t

SIMPLE_TYPES = {
    "bool": t.BOOL,
    "i8": t.BYTE,
    "i16": t.SHORT,
    "i32": t.INT,
    "i64": t.LONG,
    "fp32": t.FLOAT,
    "fp64": t.DOUBLE,
    "string": t.STRING,
    "varchar": t.STRING,
    "binary": t.BINARY,
    "date": t.DATE,
    "timestamp": t.TIMESTAMP_NTZ,
    "interval_year": t.YEAR_MONTH,
}
"""The engine's type for each kind of type that has no parameters, or whose parameters do not matter."""
_SIMPLE_NAMES = {dtype: name for name, dtype in SIMPLE_TYPES.items() if name not in ("varchar", "timestamp")}

MICROSECONDS = 6
"""The precision of Spark's timestamps and intervals: digits after the decimal point of a second."""
#: Type variations that DataFusion uses without declaring them, by type: Arrow's large and view layouts of the same values.
_LAYOUTS = {"string": (1, 2), "binary": (1, 2), "list": (1,)}
_NULLABLE, _REQUIRED = 1, 2


@dataclass(frozen=True)
class TypeReader:
    """Reads types.

    time_zone: the session's, which timestamps with a time zone get. declared: the anchors of the plan's type variations.
    """

    time_zone: str
    declared: frozenset[int] = frozenset()

    def schema(self, message: Message) -> pa.Schema:
        """Return the columns of a NamedStruct, whose names include those of nested fields, depth first."""
        names = iter(message.names)
        fields = self._fields(message.struct.types, names)
        if next(names, None) is not None:
            raise SubstraitError("a schema has more names than columns")
        columns: set[str] = set()
        for field in fields:
            if field.name in columns:
                raise SubstraitError(f"a schema has two columns {field.name}")
            columns.add(field.name)
        return pa.schema(fields)

    def _fields(self, types: Sequence[Message], names: Iterator[str] | None) -> list[pa.Field]:
        fields = []
        for i, each in enumerate(types):
            name = f"col{i + 1}" if names is None else next(names, None)
            if name is None:
                raise SubstraitError("a schema has fewer names than columns")
            dtype, nullable = self.read(each, names)
            fields.append(pa.field(name, dtype, nullable))
        return fields

    def read(self, message: Message, names: Iterator[str] | None = None) -> tuple[pa.DataType, bool]:
        """Return a type and whether it is nullable.

        names: yields the names of the fields of structs within the type, which are not in the type itself; None to number
        the fields (``col1``, ``col2``), as in casts and literals.
        """
        kind = kind_of(message, "kind", "a type")
        inner = getattr(message, kind)
        variation = getattr(inner, "type_variation_reference", 0)
        if variation and (variation in self.declared or variation not in _LAYOUTS.get(kind, ())):
            raise SubstraitError(f"the type {kind} in variation {variation} is not supported")
        return self._type(kind, inner, names), getattr(inner, "nullability", _NULLABLE) != _REQUIRED

    def _type(self, kind: str, inner: Message, names: Iterator[str] | None) -> pa.DataType:
        if kind in SIMPLE_TYPES:
            return SIMPLE_TYPES[kind]
        match kind:
            case "decimal":
                return decimal_type(inner.precision, inner.scale)
            case "timestamp_tz":
                return t.timestamp(self.time_zone)
            case "precision_timestamp":
                check_precision(kind, inner.precision)
                return t.TIMESTAMP_NTZ
            case "precision_timestamp_tz":
                check_precision(kind, inner.precision)
                return t.timestamp(self.time_zone)
            case "interval_day":
                check_precision(kind, inner.precision if inner.HasField("precision") else MICROSECONDS)
                return t.DAY_TIME
            case "struct":
                fields = self._fields(inner.types, names)
                dtype = pa.struct(fields)
                if not t.has_distinct_fields(dtype):
                    raise SubstraitError("a struct has no fields, or two fields of one name")
                return dtype
            case "list":
                element, nullable = self.read(inner.type, names)
                return pa.list_(pa.field("element", element, nullable))
            case "map":
                key, _ = self.read(inner.key, names)
                value, nullable = self.read(inner.value, names)
                return pa.map_(key, pa.field("value", value, nullable))
        raise SubstraitError(f"the type {kind} is not supported")


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """Return a decimal type; raises SubstraitError for a precision or scale that is out of range."""
    if not 1 <= precision <= 38 or not 0 <= scale <= precision:
        raise SubstraitError(
            f"decimal({precision},{scale}) is not a type: the precision must be 1 to 38, and the scale 0 to the precision"
        )
    return t.decimal(precision, scale)


def check_precision(kind: str, precision: int) -> None:
    """Raise SubstraitError unless a time type has the precision of microseconds, the only one of Spark."""
    if precision != MICROSECONDS:
        raise SubstraitError(
            f"the type {kind} of precision {precision} is not supported; it must be 6, microseconds, as in Spark"
        )


def is_same_type(left: pa.DataType, right: pa.DataType) -> bool:
    """Return whether two types have the same values; nullability, names of fields, and the time zone do not matter."""
    if left == right:
        return True
    if pa.types.is_timestamp(left) and pa.types.is_timestamp(right):
        return (left.unit, left.tz is None) == (right.unit, right.tz is None)
    if left.id != right.id or not t.is_nested(left):
        return False
    left_parts, right_parts = t.parts_of(left), t.parts_of(right)
    return len(left_parts) == len(right_parts) and all(map(is_same_type, left_parts, right_parts))


def write_type(dtype: pa.DataType, nullable: bool) -> Message:
    """Return the message for a type; raises SubstraitError for types that Substrait does not have."""
    message = proto().Type()
    nullability = _NULLABLE if nullable else _REQUIRED
    name = _SIMPLE_NAMES.get(dtype)
    if name is not None:
        getattr(message, name).nullability = nullability
    elif t.is_decimal(dtype):
        message.decimal.precision, message.decimal.scale = dtype.precision, dtype.scale
        message.decimal.nullability = nullability
    elif pa.types.is_timestamp(dtype):
        inner = message.precision_timestamp if dtype.tz is None else message.precision_timestamp_tz
        inner.precision, inner.nullability = MICROSECONDS, nullability
    elif dtype == t.DAY_TIME:
        message.interval_day.precision, message.interval_day.nullability = MICROSECONDS, nullability
    elif dtype == t.VARIANT or not t.is_nested(dtype):
        raise SubstraitError(f"Substrait has no type for {t.spark_name(dtype)}")
    elif pa.types.is_struct(dtype):
        message.struct.nullability = nullability
        message.struct.types.extend(write_type(f.type, f.nullable) for f in dtype)
    elif pa.types.is_map(dtype):
        message.map.nullability = nullability
        message.map.key.CopyFrom(write_type(dtype.key_type, False))
        message.map.value.CopyFrom(write_type(dtype.item_type, dtype.item_field.nullable))
    else:
        message.list.nullability = nullability
        message.list.type.CopyFrom(write_type(dtype.value_type, dtype.value_field.nullable))
    return message


def write_schema(schema: pa.Schema) -> Message:
    """Return the NamedStruct message of a schema."""
    message = proto().NamedStruct()
    message.struct.nullability = _REQUIRED
    for field in schema:
        message.names.extend(depth_first_names(field))
        message.struct.types.append(write_type(field.type, field.nullable))
    return message


def depth_first_names(field: pa.Field) -> list[str]:
    """Return the name of a column and those of all fields within it, depth first."""
    return [field.name, *_names_within(field.type)]


def _names_within(dtype: pa.DataType) -> list[str]:
    if pa.types.is_struct(dtype):
        return [name for field in dtype for name in depth_first_names(field)]
    return [name for part in t.parts_of(dtype) for name in _names_within(part)]
