"""The engines: Spark and kquery_spark in one session, the others each in a process of their own."""

from __future__ import annotations

from benchmarks.engines.base import Engine, Run, Settings, Skipped
from benchmarks.engines.outside import OUTSIDE, OutsideEngine

IN_SESSION = ("spark", "kquery")
ENGINES = (*IN_SESSION, *OUTSIDE)

__all__ = ["ENGINES", "IN_SESSION", "OUTSIDE", "Engine", "OutsideEngine", "Run", "Settings", "Skipped"]
