"""Maps operators of Spark's physical plans to classes of the optimized plan and to kinds of work.

The engine replaces nodes of the optimized plan, so the support table lists those classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kquery_spark.sources.formats import FORMATS
from kquery_spark.types.str_enum import StrEnum


class Kind(StrEnum):
    """A kind of work with a measured ratio of Spark's time to the engine's."""

    SCAN = "scan"
    FILTER = "filter"
    PROJECT = "project"
    AGGREGATE = "aggregate"
    JOIN = "join"
    WINDOW = "window"
    SORT = "sort"
    TOP_K = "top-k"
    PYTHON = "Python functions"
    OTHER = "other"


STEPS = frozenset({Kind.AGGREGATE, Kind.JOIN, Kind.WINDOW, Kind.SORT, Kind.TOP_K, Kind.PYTHON})
"""Kinds of operators that are expensive enough to save time in any query."""

_OPERATORS: Mapping[str, tuple[str, Kind]] = MappingProxyType(
    {
        **dict.fromkeys(
            ("HashAggregate", "ObjectHashAggregate", "SortAggregate"), ("Aggregate", Kind.AGGREGATE)
        ),
        **dict.fromkeys(("SortMergeJoin", "BroadcastHashJoin", "ShuffledHashJoin"), ("Join", Kind.JOIN)),
        **dict.fromkeys(("BroadcastNestedLoopJoin", "CartesianProduct"), ("Join", Kind.JOIN)),
        "Window": ("Window", Kind.WINDOW),
        "WindowGroupLimit": ("WindowGroupLimit", Kind.WINDOW),
        "Sort": ("Sort", Kind.SORT),
        "TakeOrderedAndProject": ("GlobalLimit", Kind.TOP_K),
        **dict.fromkeys(("CollectLimit", "GlobalLimit"), ("GlobalLimit", Kind.OTHER)),
        "LocalLimit": ("LocalLimit", Kind.OTHER),
        "CollectTail": ("Tail", Kind.OTHER),
        "Project": ("Project", Kind.PROJECT),
        "Filter": ("Filter", Kind.FILTER),
        "Expand": ("Expand", Kind.OTHER),
        "Generate": ("Generate", Kind.OTHER),
        "Union": ("Union", Kind.OTHER),
        "Sample": ("Sample", Kind.OTHER),
        "Range": ("Range", Kind.SCAN),
        "LocalTableScan": ("LocalRelation", Kind.SCAN),
        "Scan OneRowRelation": ("OneRowRelation", Kind.SCAN),
        "Scan ExistingRDD": ("LogicalRDD", Kind.SCAN),
        "InMemoryTableScan": ("InMemoryRelation", Kind.SCAN),
        "ArrowEvalPython": ("ArrowEvalPython", Kind.PYTHON),
        "BatchEvalPython": ("BatchEvalPython", Kind.PYTHON),
        "PythonMapInArrow": ("MapInArrow", Kind.PYTHON),
        # Grouped functions are supported under the same conditions as FlatMapGroupsInPandas.
        **dict.fromkeys(
            ("AggregateInPandas", "ArrowAggregatePython"), ("FlatMapGroupsInPandas", Kind.PYTHON)
        ),
        **dict.fromkeys(("WindowInPandas", "ArrowWindowPython"), ("FlatMapGroupsInPandas", Kind.PYTHON)),
    }
)
_FORMAT_NAMES = frozenset(entry.name for entry in FORMATS)
_FILE_RELATION = "LogicalRelation"
_V2_RELATION = "DataSourceV2ScanRelation"


def operator(name: str) -> tuple[str, Kind]:
    """Return the class of the optimized plan and the kind of work; for an unknown operator, its name is the class."""
    if known := _OPERATORS.get(name):
        return known
    first, _, scanned = name.partition(" ")
    if first == "Scan":
        return _relation_class(scanned), Kind.SCAN
    if first == "BatchScan":
        return _V2_RELATION, Kind.SCAN
    if first in ("MicroBatchScan", "ContinuousScan"):
        return "StreamingDataSourceV2ScanRelation", Kind.SCAN
    return name, Kind.PYTHON if name.endswith(
        ("InPandas", "InArrow", "EvalPython", "EvalPythonUDTF")
    ) else Kind.OTHER


def unread_format(name: str) -> str | None:
    """Return the format of a file scan if the engine does not read that format; None for other operators."""
    first, _, scanned = name.partition(" ")
    format_ = scanned.partition(" ")[0].lower()
    is_files = first == "Scan" and _OPERATORS.get(name) is None and _relation_class(scanned) == _FILE_RELATION
    return format_ or "this format" if is_files and format_ not in _FORMAT_NAMES else None


def _relation_class(scanned: str) -> str:
    """Return the relation class of the operator ``Scan {scanned}``; Hive tables are printed as ``Scan hive ...``."""
    return "HiveTableRelation" if scanned.startswith("hive ") else _FILE_RELATION
