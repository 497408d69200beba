"""Reads the JSON of Spark's data types (``DataType.jsonValue``), which plans, table formats and Parquet footers contain.

A ``timestamp`` becomes an Arrow timestamp in the session's time zone, a ``timestamp_ntz`` one without a zone, and a day-time
interval a duration; all of these are in microseconds, as in Spark. A year-month interval becomes ``names.YEAR_MONTH``. A
time of day is in nanoseconds, as in Spark, and has up to six decimals of a second.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from kquery_spark.errors import Unsupported
from kquery_spark.types import names as t

ATOMIC_TYPES: Final[dict[str, pa.DataType]] = {
    "void": t.NULL,
    "boolean": t.BOOL,
    "byte": t.BYTE,
    "short": t.SHORT,
    "integer": t.INT,
    "long": t.LONG,
    "float": t.FLOAT,
    "double": t.DOUBLE,
    "string": t.STRING,
    "binary": t.BINARY,
    "date": t.DATE,
    "timestamp_ntz": t.TIMESTAMP_NTZ,
}
"""The types whose Arrow type needs neither parameters nor a time zone."""
_DECIMAL = re.compile(r"decimal\((\d{1,3}),\s*(-?\d{1,3})\)")
COLLATIONS_KEY: Final = "__COLLATIONS"
"""The key in a field's metadata for the collations of its strings, because the JSON of their types has none."""
RAW_TYPE_KEY: Final = "__CHAR_VARCHAR_TYPE_STRING"
"""The key in a field's metadata for a type with CHAR(n) or VARCHAR(n), which are plain strings in JSON."""
DAY_TIME_NAME: Final = "interval day to second"
TIME_NAME: Final = "time(6)"
MONTHS_WITHIN: Final = "year-month intervals inside of arrays, maps and structs are not supported"
# Names that ``DataType.fromJson`` accepts, but that current releases do not write.
_ALIASES = {"null": "void", "decimal": "decimal(10,0)", "timestamp_ltz": "timestamp"}
_PADDED = re.compile(r"\bchar\(")
_CHAR = re.compile(r"(char|varchar)\(\d+\)")
_DAY_TIME = re.compile(r"interval (day|hour|minute|second)( to (hour|minute|second))?")
_TIME = re.compile(r"time\(([0-6])\)")
_YEAR_MONTH = re.compile(r"interval (year|month)( to month)?")
_PLAIN_COLLATION = "UTF8_BINARY"  # the default collation
_VARIANT = "__VARIANT_METADATA_KEY"


@dataclass(frozen=True)
class VariantPath:
    """A value that a scan extracts from a variant: the arguments of ``variant_get``."""

    path: str
    type: Any
    fails: bool
    time_zone: str


def is_year_month(spark: Any) -> bool:
    """Return whether a Spark type in JSON is an interval of years and months."""
    return isinstance(spark, str) and _YEAR_MONTH.fullmatch(spark) is not None


def is_exact_in_arrow(spark: Any) -> bool:
    """Return whether the Arrow type of a Spark type in JSON loses nothing; intervals lose units, times their precision."""
    if isinstance(spark, dict):
        return all(is_exact_in_arrow(part) for part in _parts_of(spark))
    exact = (DAY_TIME_NAME, TIME_NAME)
    return (
        spark in exact or not isinstance(spark, str) or not (_DAY_TIME.fullmatch(spark) or _TIME.match(spark))
    )


def decimals_of_time(spark: str) -> int:
    """The number of decimals of a second in a time type, from its name."""
    match = _TIME.fullmatch(spark)
    assert match is not None
    return int(match[1])


def has_coarse_times(spark: Any) -> bool:
    """Return whether a Spark type in JSON is or contains a time type with fewer than six decimals of a second."""
    if isinstance(spark, dict):
        return any(has_coarse_times(part) for part in _parts_of(spark))
    return isinstance(spark, str) and _TIME.fullmatch(spark) is not None and spark != TIME_NAME


def _parts_of(spark: dict[str, Any]) -> list[Any]:
    """The JSON types of the direct children of a nested type."""
    fields = [field["type"] for field in spark.get("fields", ())]
    return [*fields, *(spark[name] for name in ("elementType", "keyType", "valueType") if name in spark)]


def arrow_type(spark: Any, time_zone: str) -> pa.DataType:
    """The Arrow type of a ``DataType.jsonValue`` (a name, or an object for struct, array and map).

    Raises Unsupported for types whose values or comparisons the engine does not support exactly.
    """
    if isinstance(spark, dict):
        dtype = _nested(spark, time_zone)
        if t.has_months_within(dtype):
            raise Unsupported(MONTHS_WITHIN)
        return dtype
    if not isinstance(spark, str):
        raise Unsupported(f"the data type {spark!r} is not known")
    spark = _ALIASES.get(spark, spark)
    atomic = ATOMIC_TYPES.get(spark.removesuffix(f" collate {_PLAIN_COLLATION}"))
    if atomic is not None:
        return atomic
    if spark == "timestamp":
        return pa.timestamp("us", tz=time_zone)
    if match := _DECIMAL.fullmatch(spark):
        precision, scale = int(match[1]), int(match[2])
        if not 0 <= scale <= precision <= 38:
            raise Unsupported(f"the type {spark} has a negative or too large scale")
        return pa.decimal128(precision, scale)
    if _DAY_TIME.fullmatch(spark):
        return t.DAY_TIME
    if _YEAR_MONTH.fullmatch(spark):
        return t.YEAR_MONTH
    if _TIME.fullmatch(spark):
        return t.TIME
    raise Unsupported(_unsupported_reason(spark))


def leaf_names(spark: Any) -> Iterator[str]:
    """Yield the names of the types inside of a type in JSON that have no parts; ``udt`` for a user-defined type."""
    if isinstance(spark, str):
        yield spark
    elif spark["type"] == "udt":
        yield "udt"
    else:
        for part in _parts_of(spark):
            yield from leaf_names(part)


def is_parquet_type(name: str) -> bool:
    """Return whether Parquet has a leaf type by its name, so that a file stores it as what it is."""
    name = _ALIASES.get(name, name)
    return name in ATOMIC_TYPES or name in ("timestamp", TIME_NAME) or _DECIMAL.fullmatch(name) is not None


def is_variant(spark: Any) -> bool:
    """Return whether a Spark type in JSON is a variant, or the struct of values at some paths that a scan extracts."""
    if isinstance(spark, dict):
        fields = spark.get("fields", ())
        return bool(fields) and all(_VARIANT in (field.get("metadata") or {}) for field in fields)
    return bool(spark == "variant")


def variant_path(spark: Any, ordinal: int) -> VariantPath | None:
    """Return the path of a field of such a struct; None if the field is the whole variant."""
    if not isinstance(spark, dict):
        return None
    field = spark["fields"][ordinal]
    read = field["metadata"][_VARIANT]
    return VariantPath(read["path"], field["type"], read["failOnError"], read["timeZoneId"])


def arrow_schema(struct: dict[str, Any], time_zone: str, reads_variants: bool = False) -> pa.Schema:
    """The Arrow schema of a ``StructType`` in JSON; char(n) and varchar(n) declarations are stored as metadata.

    reads_variants: True if columns may be variants.
    """
    if not reads_variants:
        return pa.schema(_fields(struct, time_zone))
    fields = struct["fields"]
    columns = [
        pa.field(f["name"], t.VARIANT, f["nullable"]) if is_variant(f["type"]) else _field(f, time_zone)
        for f in fields
    ]
    return pa.schema(columns)


def _nested(spark: dict[str, Any], time_zone: str) -> pa.DataType:
    kind = spark.get("type")
    if kind == "struct":
        return pa.struct(_fields(spark, time_zone))
    if kind == "array":
        return pa.list_(_part("element", spark["elementType"], spark["containsNull"], time_zone))
    if kind == "map":
        return pa.map_(
            _part("key", spark["keyType"], False, time_zone),
            _part("value", spark["valueType"], spark["valueContainsNull"], time_zone),
        )
    if kind == "udt":
        raise Unsupported("user-defined types are not supported")
    raise Unsupported(f"the data type {kind!r} is not known")


def _part(name: str, spark: Any, nullable: bool, time_zone: str) -> pa.Field:
    dtype = arrow_type(spark, time_zone)
    if pa.types.is_null(dtype) and not nullable:
        raise Unsupported("a type without values, that of ARRAY() and MAP(), is not supported")
    return pa.field(name, dtype, nullable)


def _fields(struct: dict[str, Any], time_zone: str) -> list[pa.Field]:
    return [_field(field, time_zone) for field in struct["fields"]]


def _field(field: dict[str, Any], time_zone: str) -> pa.Field:
    metadata = field.get("metadata") or {}
    # Unlike an expression, a schema has a column's collation only in its metadata.
    collations = metadata.get(COLLATIONS_KEY, {})
    if not all(str(name).endswith(_PLAIN_COLLATION) for name in collations.values()):
        raise Unsupported(f"column {field['name']} has a collation, which the engine does not compare by")
    if _VARIANT in metadata:
        raise Unsupported(f"column {field['name']} is a variant that Spark takes apart while it reads")
    own_metadata = {RAW_TYPE_KEY: metadata[RAW_TYPE_KEY]} if RAW_TYPE_KEY in metadata else None
    return _part(field["name"], field["type"], field.get("nullable", True), time_zone).with_metadata(
        own_metadata
    )


def fields_within(field: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a ``StructField``, and those of all structs inside of its type."""
    yield field
    yield from _fields_of(field["type"])


def _fields_of(spark: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(spark, dict):
        for field in spark.get("fields", ()):
            yield from fields_within(field)
        for key in ("elementType", "keyType", "valueType"):
            yield from _fields_of(spark.get(key))


def padded_type(field: Mapping[str, Any]) -> str | None:
    """Return the declaration of a ``StructField`` with CHAR(n), such as ``array<char(3)>``; None for other fields.

    Spark pads the values of such a column, and the literals that it is compared with (``ApplyCharTypePadding``).
    """
    raw_types = (str((part.get("metadata") or {}).get(RAW_TYPE_KEY, "")) for part in fields_within(field))
    return next((raw for raw in raw_types if _PADDED.search(raw)), None)


def _unsupported_reason(spark: str) -> str:
    if spark.startswith("string collate"):
        return f"{spark.removeprefix('string ')} needs collation-aware comparison"
    if spark == "interval":
        return "calendar intervals are not supported"
    if spark == "variant":
        return "variant values are not supported"
    if spark.startswith("time("):
        return "times of more than six decimals of a second are not supported"
    if _CHAR.fullmatch(spark):
        return f"{spark} columns need padding and length checks that fall back to Spark"
    return f"the data type {spark!r} is not known"
