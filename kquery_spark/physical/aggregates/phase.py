"""The phases of an aggregation: before an exchange, after it, or all in one step."""

from __future__ import annotations

from kquery_spark.types.str_enum import StrEnum


class Phase(StrEnum):
    """What an aggregation reads and what it returns.

    SINGLE: rows to results. PARTIAL: rows to states. MERGE: states to states. FINAL: states to results. MIXED: returns
    states; the input of a call is its states if the child has them, otherwise rows.
    """

    SINGLE = "single"
    PARTIAL = "partial"
    MERGE = "merge"
    MIXED = "mixed"
    FINAL = "final"
