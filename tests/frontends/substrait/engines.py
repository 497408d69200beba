"""Runs DataFusion and Acero, which write and read Substrait plans, and compares rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks import tpch


def datafusion_context(tables: Mapping[str, pa.Table | Path], decimals: bool = True) -> Any:
    """A context of DataFusion with these tables. decimals: whether 0.5 in SQL is a decimal, as in Spark, or a double."""
    datafusion = pytest.importorskip("datafusion")
    config = datafusion.SessionConfig().set(
        "datafusion.sql_parser.parse_float_as_decimal", str(decimals).lower()
    )
    context = datafusion.SessionContext(config)
    for name, table in tables.items():
        if isinstance(table, Path):
            context.register_parquet(name, str(table))
        else:
            context.from_arrow(table, name=name)
    return context


def datafusion_plan(context: Any, sql: str) -> bytes:
    """The plan that DataFusion writes for a query."""
    from datafusion import substrait

    return bytes(substrait.Serde.serialize_bytes(sql, context))


def datafusion_rows(context: Any, plan: bytes) -> pa.Table:
    """The rows that DataFusion computes for a plan."""
    from datafusion import substrait

    logical = substrait.Consumer.from_substrait_plan(context, substrait.Serde.deserialize_bytes(plan))
    return context.create_dataframe_from_logical_plan(logical).to_arrow_table()


def acero_rows(tables: Mapping[str, pa.Table], plan: bytes) -> pa.Table:
    """The rows that Acero computes for a plan."""
    from pyarrow import substrait

    def provided(names: list[str], schema: pa.Schema) -> pa.Table:
        return tables[names[0]].cast(schema)

    return substrait.run_query(pa.py_buffer(plan), table_provider=provided, use_threads=False).read_all()


def tpch_files(data: Path) -> dict[str, Path]:
    """The files of the TPC-H tables, by name."""
    return {table: data / f"{table}.parquet" for table in tpch.TABLES}


def rows_of(table: pa.Table, digits: int = 6) -> list[tuple[Any, ...]]:
    """The rows of a table, with numbers rounded to some digits after the decimal point."""
    columns = [[_rounded(v, digits) for v in column.to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True))


def in_any_order(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows in an order that depends only on their values, to compare results without ORDER BY."""
    return sorted(rows, key=repr)


def _rounded(value: Any, digits: int) -> Any:
    if isinstance(value, float):
        # NaN is not equal to itself in Python, and -0.0 sorts by another repr than 0.0.
        return "NaN" if value != value else round(value, digits) + 0.0
    if isinstance(value, Decimal):
        return round(float(value), digits) + 0.0
    return value
