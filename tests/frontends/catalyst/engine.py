"""Running imported plans in this process, and comparing their rows with Spark's."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa

from kquery_spark.config.engine import EngineConfig
from kquery_spark.frontends.catalyst.importer import Handover, Imported, Importer
from kquery_spark.optimizer import optimize
from kquery_spark.planner import plan_query
from kquery_spark.runtime.local import LocalExecutor
from kquery_spark.spark_bridge.jvm.calls import Jvm
from kquery_spark.spark_bridge.plan.plan_facts import Facts
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode
from kquery_spark.spark_bridge.relations.leaves import RelationReader
from kquery_spark.spark_bridge.session.hybrid_zones import HybridZones
from kquery_spark.spark_bridge.session.settings import session_settings
from kquery_spark.stages import build_stages
from kquery_spark.types.batch import Batch
from kquery_spark.types.names import spark_name


@dataclass(frozen=True)
class TakenQuery:
    """A query with what is needed to import it."""

    spark: Any
    frame: Any
    facts: Facts
    importer: Importer
    root: CatalystNode

    def whole(self) -> Imported:
        return self.importer.import_plan(self.root)

    def run(self, imported: Imported) -> pa.Table:
        """The engine's answer, in this process, with Spark's column names."""
        config = EngineConfig(small_bytes=0, parallelism=2)
        graph = build_stages(plan_query(optimize(imported.plan), config), config)
        inputs = {h.key: partial(self._rows, h) for h in imported.inputs}
        table = LocalExecutor(graph, config, inputs=inputs).table()
        columns = [table.column(name) for name in imported.output]
        return pa.Table.from_arrays(columns, names=self.frame.columns)

    def _rows(self, handover: Handover) -> Iterator[Batch]:
        from pyspark.sql import DataFrame

        plan = self.facts.jvm_object(handover.node)
        dataset = self.spark._jvm.org.apache.spark.sql.classic.Dataset.ofRows(self.spark._jsparkSession, plan)
        table = DataFrame(dataset, self.spark).toArrow()
        columns = [table.column(i) for i in handover.positions]
        for batch in pa.Table.from_arrays(columns, names=handover.schema.names).to_batches():
            yield Batch.from_arrow(batch, handover.schema)


def take(spark: Any, jvm: Jvm, query: Any) -> TakenQuery:
    """The optimized plan of a query or a DataFrame, ready to be imported."""
    frame = spark.sql(query) if isinstance(query, str) else query
    settings = session_settings(spark._jsparkSession.sessionState().conf(), jvm)
    facts = Facts(jvm, frame._jdf.queryExecution().optimizedPlan())
    importer = Importer(
        facts,
        RelationReader(facts, jvm, settings.time_zone, spark._jsc.hadoopConfiguration, HybridZones(jvm)),
        settings,
    )
    return TakenQuery(spark, frame, facts, importer, facts.parse())


def assert_same_rows(ours: pa.Table, theirs: pa.Table, ordered: bool = False) -> None:
    """The same rows, floats within 1e-9, in the same order where it is asked for; the same types, too."""
    assert [spark_name(t) for t in ours.schema.types] == [spark_name(t) for t in theirs.schema.types]
    left, right = rows(ours), rows(theirs)
    assert len(left) == len(right)
    if not ordered:
        left, right = sorted(left, key=_sort_key), sorted(right, key=_sort_key)
    for a, b in zip(left, right, strict=True):
        assert all(_same(x, y) for x, y in zip(a, b, strict=True)), f"{a} is not {b}"


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _sort_key(row: tuple[Any, ...]) -> list[tuple[bool, str]]:
    return [(v is None, f"{v:.6e}" if isinstance(v, float) else str(v)) for v in row]


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(a, Decimal) and isinstance(b, Decimal):
        return a == b
    return type(a) is type(b) and bool(a == b)
