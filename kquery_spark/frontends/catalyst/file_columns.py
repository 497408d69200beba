"""Hidden columns of files in Catalyst plans: fields of ``_metadata``, ``input_file_name()`` and the like."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kquery_spark.sources.delta.features import ROW_TRACKING
from kquery_spark.sources.file_columns import INPUT_FILE, METADATA, metadata_column
from kquery_spark.spark_bridge.plan.plan_tree import CatalystNode

INPUT_FILE_COLUMNS = {
    "InputFileName": (-1, INPUT_FILE),
    "InputFileBlockStart": (-2, metadata_column("file_block_start")),
    "InputFileBlockLength": (-3, metadata_column("file_block_length")),
}
"""Expressions about the file being read. Each maps to a negative number, which identifies it among the expression ids of a
scan's columns (which are never negative), and to the hidden column with its values."""

_MAX_FIELDS = 32  # an upper limit for the fields of _metadata, which has 7, and a few more in table formats
_NAMING = frozenset({"Project", "Filter"})
_PASSING = frozenset({"Filter", "SubqueryAlias", "View"})


def field_id(attribute: CatalystNode, ordinal: int) -> int | None:
    """Return the number that identifies a field of ``_metadata`` among the expression ids of a scan's columns."""
    if ordinal >= _MAX_FIELDS:
        return None
    expr_id: int = attribute["exprId"]
    return -1 - len(INPUT_FILE_COLUMNS) - (expr_id * _MAX_FIELDS + ordinal)


def input_file_expressions(node: CatalystNode) -> Iterator[str]:
    """The classes of expressions about the file being read that occur in a plan node."""
    for top in node.expressions():
        yield from (part.cls for part in top.walk() if part.cls in INPUT_FILE_COLUMNS)


def named_relation(node: CatalystNode) -> CatalystNode | None:
    """Return the relation directly below a plan node, to whose files these expressions refer; None if it is ambiguous."""
    if node.cls not in _NAMING:
        return None
    below = node.children[0]
    while below.cls in _PASSING:
        below = below.children[0]
    return below if below.cls == "LogicalRelation" else None


def row_tracking_conflict(
    root: CatalystNode, tracks_rows: Callable[[CatalystNode], bool]
) -> tuple[CatalystNode, str] | None:
    """Find a table with row tracking whose ``_metadata`` a query reads; return it with the fallback reason.

    Delta's optimizer rule for such tables replaces their ``_metadata`` by one with all fields. If the rule runs again for a
    part of an optimized plan that falls back to Spark, expressions refer to wrong fields by position.
    """
    for node in root.walk_all():
        if node.cls == "LogicalRelation" and _has_metadata(node) and tracks_rows(node):
            return node, ROW_TRACKING.declined().reason
    return None


def _has_metadata(node: CatalystNode) -> bool:
    return any(attribute["name"] == METADATA for attribute in node.trees("output"))
