"""A physical plan from an event log: a tree of nodes with names, strings and metrics."""

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
_MAX_TEXT_CHARACTERS = 1 << 16  # Spark itself cuts lists of expressions; to analyze more takes too much time
_CUT_OFF_MARK = "... 1 more fields"  # as Spark writes it
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


def read_plan(info: Record) -> PhysicalNode:
    """The tree of a ``sparkPlanInfo``; missing fields are empty. MalformedEvent for one that is not a plan."""
    try:
        return _read_node(info)
    except RecursionError:
        raise MalformedEvent("its plan nests too deeply") from None


def _read_node(info: Record) -> PhysicalNode:
    children = tuple([_read_node(one) for one in records(info, "children")])
    text = string(info, "simpleString", _MAX_TEXT_CHARACTERS)
    if len(text) == _MAX_TEXT_CHARACTERS:
        text += _CUT_OFF_MARK
    metadata = child(info, "metadata")
    return PhysicalNode(
        string(info, "nodeName", _MAX_NAME_CHARACTERS).strip(),
        text,
        children,
        {name: string(metadata, name, _MAX_TEXT_CHARACTERS) for name in metadata},
        {
            string(metric, "name"): required_number(metric, "accumulatorId")
            for metric in records(info, "metrics")
            if "accumulatorId" in metric
        },
    )
