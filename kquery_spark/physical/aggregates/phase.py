"""The phases of an aggregation: before an exchange, after it, or all in one step."""

from __future__ import annotations

from kquery_spark.types.str_enum import StrEnum


class Phase(StrEnum):
    """SINGLE: rows to results. PARTIAL: rows to states. MERGE: states to states. FINAL: states to results.

    MIXED: to states, from states for the aggregates whose states the child has, from rows for the others.
    """

    SINGLE = "single"
    PARTIAL = "partial"
    MERGE = "merge"
    MIXED = "mixed"
    FINAL = "final"
