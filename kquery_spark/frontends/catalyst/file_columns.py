"""Hidden columns of files in Catalyst plans: fields of ``_metadata``, and ``input_file_name()``."""

from __future__ import annotations

from kquery_spark.spark_bridge.plan_tree import CatalystNode

INPUT_FILE_ID = -1
"""Stands for ``input_file_name()`` among the expression ids of a scan's columns, of which none is negative."""

_MAX_FIELDS = 32  # of _metadata, which has 7 and in table formats some more
_NAMING = frozenset({"Project", "Filter"})
_PASSING = frozenset({"Filter", "SubqueryAlias", "View"})


def field_id(attribute: CatalystNode, ordinal: int) -> int | None:
    """What stands for a field of a ``_metadata`` attribute among the expression ids of a scan's columns."""
    return -2 - (attribute["exprId"] * _MAX_FIELDS + ordinal) if ordinal < _MAX_FIELDS else None


def names_input_file(node: CatalystNode) -> bool:
    """Whether an expression of a plan node has ``input_file_name()`` in it."""
    return any(part.cls == "InputFileName" for top in node.expressions() for part in top.walk())


def named_relation(node: CatalystNode) -> CatalystNode | None:
    """The files that ``input_file_name()`` in a plan node names: those right below; None if it may see other rows."""
    if node.cls not in _NAMING:
        return None
    below = node.children[0]
    while below.cls in _PASSING:
        below = below.children[0]
    return below if below.cls == "LogicalRelation" else None
