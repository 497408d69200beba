"""The numbers of Substrait's enums, and the engine's values for them, which the reader and the writer share."""

from __future__ import annotations

from kquery_spark.expr import FrameUnit
from kquery_spark.logical import JoinKind, SetKind

JOIN_TYPES = {
    1: ("inner", JoinKind.INNER, False),
    2: ("outer", JoinKind.FULL, False),
    3: ("left", JoinKind.LEFT, False),
    4: ("right", JoinKind.RIGHT, False),
    5: ("left semi", JoinKind.SEMI, False),
    6: ("left anti", JoinKind.ANTI, False),
    8: ("right semi", JoinKind.SEMI, True),
    9: ("right anti", JoinKind.ANTI, True),
}
"""For each JoinType: its name, the kind of join, and whether left and right are swapped."""

SET_OPERATIONS = {
    1: (SetKind.EXCEPT, False),  # MINUS_PRIMARY
    7: (SetKind.EXCEPT, True),  # MINUS_PRIMARY_ALL
    4: (SetKind.INTERSECT, False),  # INTERSECTION_MULTISET
    8: (SetKind.INTERSECT, True),  # INTERSECTION_MULTISET_ALL
}
"""For each SetOp that is a SetOperation node: its kind, and whether it is ALL."""
INTERSECTION_PRIMARY, UNION_DISTINCT, UNION_ALL = 3, 5, 6

SORT_DIRECTIONS = {1: (True, True), 2: (True, False), 3: (False, True), 4: (False, False)}
"""For each SortDirection: whether it is ascending, and whether NULLs are first. 5 is CLUSTERED, which is not an order."""

FRAME_UNITS = {1: FrameUnit.ROWS, 2: FrameUnit.RANGE}
"""For each BoundsType of a window: the unit of its frame."""

INVOCATION_ALL, INVOCATION_DISTINCT = 1, 2
PHASE_UNSPECIFIED, PHASE_INITIAL_TO_RESULT = 0, 3
"""Phases of an aggregate call. The other numbers are partial aggregations."""

CAST_RETURN_NULL, CAST_THROW_EXCEPTION = 1, 2
PREDICATE_EXISTS = 1

ALL_ROWS = -1
"""Not an enum: the count of a fetch relation without a limit."""
