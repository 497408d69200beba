"""Costs of ordered windows in the engine that the factor of windows, measured with one key and short rows, lacks.

The engine compares all keys of ORDER BY for every row, while Spark mostly compares the first ones, and it copies whole rows.
Example: ``row_number() OVER (PARTITION BY k ORDER BY seven keys)`` of 5 million rows adds 5e6 * 6 * 5e-7 = 15 task seconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kquery_spark.config.cost import CostModel
from kquery_spark.qualify.application import QueryRun
from kquery_spark.qualify.judgment import JudgedNode
from kquery_spark.qualify.operators import Kind
from kquery_spark.qualify.plan import PhysicalNode

ORDER_KEY_SECONDS = 5e-7
"""Task seconds of one row and one key after the first: row_number over 2 and 5 million rows, ordered by 1 and by 7 keys."""

SHORT_ROW_BYTES = 32.0
"""Bytes of a row, as Spark stores it, that the factor of windows includes."""

_DIRECTION = re.compile(r" (?:ASC|DESC) NULLS (?:FIRST|LAST)")
_CUT_OFF = re.compile(r"\.\.\. (\d+) more fields")


def ordering_seconds(node: JudgedNode, run: QueryRun, costs: CostModel) -> float:
    """Return the task seconds that the engine takes for the further keys and the width of an ordered window's rows.

    Zero for all other operators.
    """
    if node.kind is not Kind.WINDOW or not (keys := order_keys(node.node)):
        return 0.0
    rows = max((output_rows(child.node, run) for child in node.children), default=0.0)
    width = max(0.0, _row_bytes(run) - SHORT_ROW_BYTES)
    return rows * ((keys - 1) * ORDER_KEY_SECONDS + width * costs.sort_byte_seconds)


def order_keys(node: PhysicalNode) -> int:
    """Return the number of keys by which a ``Window`` or a ``WindowGroupLimit`` orders its groups."""
    keys = node.text.rpartition("], [")[2]
    if node.name == "WindowGroupLimit":  # the list of keys is not the last argument
        keys = keys.partition("], ")[0]
    more = _CUT_OFF.search(keys)
    return len(_DIRECTION.findall(keys)) + (int(more[1]) if more and _DIRECTION.search(keys) else 0)


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
