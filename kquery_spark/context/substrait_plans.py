"""``kq.plan_from_substrait()``, which reads a Substrait plan of another engine as a DataFrame."""

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
    """Return the query of a Substrait plan as a DataFrame, which runs with Spark's semantics.

    Needs the extra ``kquery-spark[substrait]``.

    plan: the bytes of the plan, or the path of a file that contains them. tables: a context with the tables that the plan
    refers to, or a dict from their names to Arrow tables, objects with an Arrow stream, or paths of Parquet files. Raises
    SubstraitError if the plan is malformed, or if the engine cannot do exactly what it says.
    """
    return _context_of(tables).substrait(_plan_bytes(plan))


def _plan_bytes(plan: bytes | str | Path) -> bytes:
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


def _context_of(tables: ExecutionContext | Mapping[str, Any] | None) -> ExecutionContext:
    if isinstance(tables, ExecutionContext):
        return tables
    if tables is not None and not isinstance(tables, Mapping):
        raise PlanError(
            f"tables must be an ExecutionContext or a dict of tables by name, not {type_name(tables)}"
        )
    context = ExecutionContext()
    for name, table in (tables or {}).items():
        if isinstance(table, str | Path):
            context.register_parquet(name, str(table))
        else:
            context.register_arrow(name, table)
    return context
