"""Variants in Parquet files: groups of two binaries, ``value`` and ``metadata``."""

from __future__ import annotations

import pyarrow as pa

from kquery_spark.errors import SourceError
from kquery_spark.sources.parquet.features import SHREDDED
from kquery_spark.types import names as t
from kquery_spark.types.arrow_types import LARGE_BINARIES, is_any

_VALUE, _METADATA, _SHREDDED = "value", "metadata", "typed_value"


def check_variant(file_type: pa.DataType, column: str, path: str) -> None:
    """Raise Unsupported or SourceError for a column that the engine cannot read as a variant."""
    names = [field.name for field in file_type] if pa.types.is_struct(file_type) else []
    if _SHREDDED in names:
        raise SHREDDED.declined(column=column, file=path)
    kinds = (pa.types.is_binary, *LARGE_BINARIES)
    if sorted(names) != [_METADATA, _VALUE] or not all(is_any(field.type, kinds) for field in file_type):
        raise SourceError(f"{path}: column {column} is no variant in the file, the table says that it is")


def variant_column(data: pa.Array) -> pa.Array:
    """A column of variants as the engine has them."""
    binaries = [data.field(name).cast(t.BINARY) for name in (_VALUE, _METADATA)]
    is_null = data.is_null() if data.null_count else None
    return pa.StructArray.from_arrays(binaries, fields=list(t.VARIANT), mask=is_null)
