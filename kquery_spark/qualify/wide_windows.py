"""Estimates the cost of copying wide rows in ordered windows; the factor of windows was measured with short rows.

Example: ``row_number() OVER (PARTITION BY k ORDER BY v)`` over 5 million rows of 132 bytes adds 5e6 * 100 * 4e-9 = 2 task
seconds. The number of keys does not matter: the engine, like Spark, compares later keys only for rows with equal first keys.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kquery_spark.config.cost import CostModel
from kquery_spark.qualify.application import QueryRun
from kquery_spark.qualify.judgment import JudgedNode
from kquery_spark.qualify.operators import Kind
from kquery_spark.qualify.plan import PhysicalNode

SHORT_ROW_BYTES = 32.0
"""Bytes of a row, as Spark stores it, that the factor of windows includes."""

_SORT_KEY = re.compile(r" (?:ASC|DESC) NULLS (?:FIRST|LAST)")


def wide_row_seconds(node: JudgedNode, run: QueryRun, costs: CostModel) -> float:
    """Return the task seconds that the engine takes to copy the rows of an ordered window; zero for all other operators."""
    if node.kind is not Kind.WINDOW or not is_ordered(node.node):
        return 0.0
    rows = max((output_rows(child.node, run) for child in node.children), default=0.0)
    return rows * max(0.0, _row_bytes(run) - SHORT_ROW_BYTES) * costs.sort_byte_seconds


def is_ordered(node: PhysicalNode) -> bool:
    """Return True for a ``Window`` or a ``WindowGroupLimit`` with an ORDER BY, which is its last list of expressions."""
    return bool(_SORT_KEY.search(node.text.rpartition("], [")[2]))


def output_rows(node: PhysicalNode, run: QueryRun) -> float:
    """Return the number of output rows of a node, or of the first node below it that counts its rows."""
    counted = next((n for n in node.walk() if n.rows_id is not None), None)
    return 0.0 if counted is None or counted.rows_id is None else run.values.get(counted.rows_id, 0.0)


def _row_bytes(run: QueryRun) -> float:
    """Return the bytes of a row in the largest exchange."""
    exchanges = [node.metrics for node in run.plan.walk() if node.name == "Exchange"]
    sizes = [(_value(run, m, "data size"), _value(run, m, "shuffle records written")) for m in exchanges]
    size, rows = max(sizes, default=(0.0, 0.0))
    return size / rows if rows else 0.0


def _value(run: QueryRun, metrics: Mapping[str, int], name: str) -> float:
    return run.values.get(metrics[name], 0.0) if name in metrics else 0.0
