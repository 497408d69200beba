"""A physical plan from an event log: a tree of nodes with names, strings and metrics."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_ROWS = "number of output rows"
# Nodes that only wrap others: generated code, adaptive execution, subqueries.
_WRAPPERS = frozenset(
    {
        *("InputAdapter", "ColumnarToRow", "RowToColumnar", "AdaptiveSparkPlan", "AQEShuffleRead"),
        *("CustomShuffleReader", "ShuffleQueryStage", "BroadcastQueryStage", "ResultQueryStage"),
        *("TableCacheQueryStage", "Subquery", "SubqueryBroadcast", "SubqueryAdaptiveBroadcast"),
        *("ReusedExchange", "ReusedSubquery", "CoalescedShuffleRead", "EmptyRelation", ""),
    }
)
_EXCHANGES = frozenset({"Exchange", "BroadcastExchange"})
_CODEGEN = re.compile(r"WholeStageCodegen \(\d+\)$")
_COLUMN = re.compile(r"#(\d+)")
_CUT_OFF = re.compile(r"\.\.\. \d+ more fields")


@dataclass(frozen=True)
class PhysicalNode:
    """One operator of Spark's physical plan. ``metrics``: accumulator ids by the names of the metrics."""

    name: str
    text: str = ""
    children: tuple[PhysicalNode, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_wrapper(self) -> bool:
        """Whether it only wraps the nodes below."""
        return self.name in _WRAPPERS or bool(_CODEGEN.match(self.name))

    @property
    def is_exchange(self) -> bool:
        """Whether rows change tasks here."""
        return self.name in _EXCHANGES

    @property
    def arguments(self) -> str:
        """The text without the operator's name."""
        return self.text[len(self.name) :] if self.text.startswith(self.name) else self.text

    @property
    def is_cut_off(self) -> bool:
        """Whether Spark left some of its expressions out of the text (``spark.sql.debug.maxToStringFields``)."""
        return bool(_CUT_OFF.search(self.text))

    @property
    def column_ids(self) -> frozenset[str]:
        """The numbers of the columns in its text."""
        return frozenset(_COLUMN.findall(self.text))

    @property
    def rows_id(self) -> int | None:
        """The accumulator of its output rows."""
        return self.metrics.get(_ROWS)

    def walk(self) -> Iterator[PhysicalNode]:
        """The node and all below, parents first."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack += reversed(node.children)


def read_plan(info: Mapping[str, Any]) -> PhysicalNode:
    """The tree of a ``sparkPlanInfo``; missing fields are empty."""
    return PhysicalNode(
        str(info.get("nodeName", "")).strip(),
        str(info.get("simpleString", "")),
        tuple(read_plan(child) for child in info.get("children", ())),
        {str(key): str(value) for key, value in (info.get("metadata") or {}).items()},
        {m["name"]: m["accumulatorId"] for m in info.get("metrics", ()) if "accumulatorId" in m},
    )
