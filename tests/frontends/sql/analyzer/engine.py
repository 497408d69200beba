"""SQL text run in this process: parsed, analyzed, optimized, planned and executed."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from kquery_spark.config.engine import EngineConfig
from kquery_spark.frontends.sql import parse_query
from kquery_spark.frontends.sql.analyzer import Analyzed, SessionFacts, analyze
from kquery_spark.logical import LogicalPlan, Scan
from kquery_spark.optimizer import optimize
from kquery_spark.planner import plan_query
from kquery_spark.runtime.local import LocalExecutor
from kquery_spark.sources.memory import memory_source
from kquery_spark.sources.parquet.path_source import parquet_source
from kquery_spark.stages import build_stages

CONFIG = EngineConfig()


class Tables:
    """A catalog of Arrow tables, or of the Parquet files of a directory."""

    def __init__(self, tables: Mapping[str, pa.Table] | None = None, directory: Path | None = None) -> None:
        self._plans: dict[str, LogicalPlan] = {
            name: Scan(name, memory_source(table)) for name, table in (tables or {}).items()
        }
        for file in sorted(directory.glob("*.parquet")) if directory else ():
            self._plans[file.stem] = Scan(file.stem, parquet_source([str(file)]))

    def table(self, name: tuple[str, ...]) -> LogicalPlan | None:
        return self._plans.get(name[-1].lower())

    def table_names(self) -> list[str]:
        return list(self._plans)


def analyzed(sql: str, tables: Tables, facts: SessionFacts | None = None) -> Analyzed:
    return analyze(parse_query(sql), sql, tables, facts)


def execute(plan: LogicalPlan, config: EngineConfig = CONFIG) -> pa.Table:
    return LocalExecutor(build_stages(plan_query(plan, config), config), config).table()


def run(sql: str, tables: Tables, facts: SessionFacts | None = None) -> tuple[tuple[str, ...], pa.Table]:
    """The names the user sees, and the rows."""
    made = analyzed(sql, tables, facts)
    return made.names, execute(optimize(made.plan))


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows as tuples, floats to 9 digits, NaN as text so that it equals itself."""
    columns = [c.to_pylist() for c in table.columns]
    return [tuple(map(_plain, row)) for row in zip(*columns, strict=True)]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(f"{value:.9g}")
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    if isinstance(value, dict):
        return tuple((k, _plain(v)) for k, v in value.items())
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    return value


def same_type(ours: pa.DataType, sparks: pa.DataType) -> bool:
    """Whether types agree, but for what Arrow calls a list's items and whether those can be NULL."""
    if pa.types.is_map(sparks):
        return pa.types.is_map(ours) and same_type(ours.item_type, sparks.item_type)
    if pa.types.is_list(sparks):
        return pa.types.is_list(ours) and same_type(ours.value_type, sparks.value_type)
    if pa.types.is_struct(sparks):
        return (
            pa.types.is_struct(ours)
            and [f.name for f in ours] == [f.name for f in sparks]
            and all(same_type(a.type, b.type) for a, b in zip(ours, sparks, strict=True))
        )
    return ours == sparks
