"""``kq.plan_from_substrait()``: a plan of another engine as a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kquery_spark.context.execution_context import ExecutionContext
from kquery_spark.errors import PlanError, SourceError, type_name
from kquery_spark.frontends.dataframe import DataFrame


def plan_from_substrait(
    plan: bytes | str | Path, tables: ExecutionContext | Mapping[str, Any] | None = None
) -> DataFrame:
    """Return the query of a Substrait plan, which runs with Spark's answer; needs the extra ``kquery-spark[substrait]``.

    plan: the bytes of the plan, or the path of a file with them. tables: a context with the plan's tables, or for each name
    an Arrow table, any object with an Arrow stream, or the path of Parquet files. Raises SubstraitError if the plan is
    malformed, or if the engine cannot do exactly what it says.
    """
    return _context(tables).substrait(_bytes(plan))


def _bytes(plan: bytes | str | Path) -> bytes:
    if isinstance(plan, bytes | bytearray | memoryview):
        return bytes(plan)
    if not isinstance(plan, str | Path):
        raise PlanError(
            f"plan_from_substrait takes the bytes of a plan or the path of a file, not {type_name(plan)}"
        )
    try:
        return Path(plan).read_bytes()
    except OSError as error:
        raise SourceError(f"cannot read the plan {plan}: {error.strerror}") from None


def _context(tables: ExecutionContext | Mapping[str, Any] | None) -> ExecutionContext:
    if isinstance(tables, ExecutionContext):
        return tables
    if tables is not None and not isinstance(tables, Mapping):
        raise PlanError(f"tables is an ExecutionContext or a dict of tables by name, not {type_name(tables)}")
    context = ExecutionContext()
    for name, table in (tables or {}).items():
        if isinstance(table, str | Path):
            context.register_parquet(name, str(table))
        else:
            context.register_arrow(name, table)
    return context
