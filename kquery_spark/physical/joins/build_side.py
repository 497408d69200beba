"""The build side of a hash join."""

from __future__ import annotations

from kquery_spark.types.str_enum import StrEnum


class BuildSide(StrEnum):
    """Which input of a join is held in memory as a hash table. The other input is the probe side."""

    LEFT = "left"
    RIGHT = "right"
