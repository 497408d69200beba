"""Stages: a physical plan cut at its exchanges, and what crosses the cuts."""

from kquery_spark.stages.graph import Stage, StageGraph, build_stages

__all__ = ["Stage", "StageGraph", "build_stages"]
