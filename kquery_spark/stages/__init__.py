"""Stages: a physical plan cut at its exchanges, and the formats of the plans and rows that are sent between processes."""

from kquery_spark.stages.graph import Stage, StageGraph, build_stages

__all__ = ["Stage", "StageGraph", "build_stages"]
