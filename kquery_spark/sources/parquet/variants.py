"""Variant columns in Parquet files: groups with ``value`` and ``metadata``, and with ``typed_value`` if shredded."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kquery_spark.errors import SourceError
from kquery_spark.kernels.compiled import VARIANT_LOOPS
from kquery_spark.sources.parquet.features import SHREDDED, SHREDDED_TYPE, SHREDDED_UNCOMPILED
from kquery_spark.sources.parquet.file import OpenFile
from kquery_spark.sources.parquet.shredding import (
    METADATA,
    TYPED_VALUE,
    VALUE,
    rebuild_variants,
    unreadable_type,
)
from kquery_spark.types import names as t
from kquery_spark.types.arrow_types import LARGE_BINARIES, is_any


def is_shredded(file_type: pa.DataType) -> bool:
    """True if a variant column stores parts of its values in typed columns."""
    return bool(pa.types.is_struct(file_type)) and int(file_type.get_field_index(TYPED_VALUE)) >= 0


def check_variant(opened: OpenFile, column: str, is_old: bool) -> None:
    """Raise Unsupported or SourceError for a column that the engine cannot read as a variant.

    is_old: whether the column may have dates or times that depend on the calendar.
    """
    file_type, path = opened.schema.field(column).type, opened.file.path
    if is_shredded(file_type):
        part = unreadable_type(file_type)
        if part is not None or is_old or opened.has_int96(column) or opened.may_exceed_type(column):
            kind = "old dates or times, or numbers too large" if part is None else part
            raise SHREDDED_TYPE.declined(column=column, file=path, kind=kind)
        return
    kinds = (pa.types.is_binary, *LARGE_BINARIES)
    names = [field.name for field in file_type] if pa.types.is_struct(file_type) else []
    if sorted(names) != [METADATA, VALUE] or not all(is_any(field.type, kinds) for field in file_type):
        raise SourceError(
            f"{path}: column {column} is not a variant in the file, although it is one in the table"
        )


def check_compiled(opened: OpenFile, column: str) -> None:
    """Raise Unsupported for a shredded variant as long as the loops that reassemble it are not compiled."""
    if is_shredded(opened.schema.field(column).type) and not VARIANT_LOOPS.are_ready_or_start_compiling():
        raise SHREDDED_UNCOMPILED.declined(
            column=column, file=opened.file.path, not_ready_clause=VARIANT_LOOPS.not_ready_clause
        )


def check_not_shredded(opened: OpenFile, column: str) -> None:
    """Raise Unsupported for a shredded variant. Called if the session does not allow reading them."""
    if column in opened.names and is_shredded(opened.schema.field(column).type):
        raise SHREDDED.declined(column=column, file=opened.file.path)


def shredded_parts(column: pa.Field, fields: Sequence[str]) -> list[str]:
    """The paths of the leaves that are needed to reassemble these fields of shredded objects.

    An empty list means that the whole column must be read. For column ``v`` with the typed fields a and b, and fields [a],
    the paths are v.value, v.metadata, and v.typed_value.a.
    """
    if not is_shredded(column.type):
        return []
    typed = column.type.field(TYPED_VALUE)
    if not pa.types.is_struct(typed.type):
        return []
    stored = [field.name for field in typed.type]
    # if no requested field is typed, any typed field is read, because it shows which rows have a typed object
    read = [name for name in stored if name in fields] or stored[:1]
    if any("." in name for name in (column.name, *read)):
        return []
    others = [field.name for field in column.type if field.name != TYPED_VALUE]
    return [
        *(f"{column.name}.{name}" for name in others),
        *(f"{column.name}.{TYPED_VALUE}.{name}" for name in read),
    ]


def variant_column(data: pa.Array) -> pa.Array:
    """Convert a variant column into the engine's form, a struct of value and metadata."""
    if is_shredded(data.type):
        return rebuild_variants(data)
    binaries = [data.field(name).cast(t.BINARY) for name in (VALUE, METADATA)]
    is_null = data.is_null() if data.null_count else None
    return pa.StructArray.from_arrays(binaries, fields=list(t.VARIANT), mask=is_null)
