"""Reads a physical plan from an event log into a tree of nodes with names, strings and metrics."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kquery_spark.qualify.fields import MalformedEvent, Record, child, records, required_number, string

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
_MAX_NAME_CHARACTERS = 200
_MAX_STRING_CHARACTERS = (
    1 << 16
)  # bounds the time of the analysis; Spark itself also cuts lists of expressions
_CUT_OFF_MARK = "... 1 more fields"  # the form that Spark writes
_CUT_OFF = re.compile(r"\.\.\. \d+ more fields")


@dataclass(frozen=True)
class PhysicalNode:
    """One operator of Spark's physical plan.

    text: Spark's one-line description with the expressions (``simpleString``). metrics: accumulator ids by metric name.
    """

    name: str
    text: str = ""
    children: tuple[PhysicalNode, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_wrapper(self) -> bool:
        """Whether the node only wraps the nodes below it."""
        return self.name in _WRAPPERS or bool(_CODEGEN.match(self.name))

    @property
    def is_exchange(self) -> bool:
        """Whether the node moves rows between tasks."""
        return self.name in _EXCHANGES

    @property
    def arguments(self) -> str:
        """The description without the operator's name."""
        return self.text[len(self.name) :] if self.text.startswith(self.name) else self.text

    @property
    def is_cut_off(self) -> bool:
        """Whether the description lacks some expressions (``spark.sql.debug.maxToStringFields``)."""
        return bool(_CUT_OFF.search(self.text))

    @property
    def column_ids(self) -> frozenset[str]:
        """The ids of the columns in the description."""
        return frozenset(_COLUMN.findall(self.text))

    @property
    def rows_id(self) -> int | None:
        """The id of the accumulator that counts the output rows."""
        return self.metrics.get(_ROWS)

    def walk(self) -> Iterator[PhysicalNode]:
        """Yield the node and all nodes below it, parents first."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack += reversed(node.children)


def read_plan(info: Record) -> PhysicalNode:
    """Read the tree of a ``sparkPlanInfo``; missing fields are empty. Raises MalformedEvent if it is not a plan."""
    try:
        return _read_node(info)
    except RecursionError:
        raise MalformedEvent("the plan nests too deeply") from None


def _read_node(info: Record) -> PhysicalNode:
    children = tuple([_read_node(record) for record in records(info, "children")])
    text = string(info, "simpleString", _MAX_STRING_CHARACTERS)
    if len(text) == _MAX_STRING_CHARACTERS:
        text += _CUT_OFF_MARK
    metadata = child(info, "metadata")
    return PhysicalNode(
        string(info, "nodeName", _MAX_NAME_CHARACTERS).strip(),
        text,
        children,
        {name: string(metadata, name, _MAX_STRING_CHARACTERS) for name in metadata},
        {
            string(metric, "name"): required_number(metric, "accumulatorId")
            for metric in records(info, "metrics")
            if "accumulatorId" in metric
        },
    )
