"""The build side of a hash join."""

from __future__ import annotations

from kquery_spark.types.str_enum import StrEnum


class BuildSide(StrEnum):
    """Which input is held in memory."""

    LEFT = "left"
    RIGHT = "right"
