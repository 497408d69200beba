"""The suites by name."""

from __future__ import annotations

from benchmarks.suites.base import Query, Step, Suite, Table
from benchmarks.suites.micro import MICRO
from benchmarks.suites.pipelines import PIPELINES
from benchmarks.suites.small import SMALL
from benchmarks.suites.taxi import TAXI
from benchmarks.suites.tpcds import TPCDS
from benchmarks.suites.tpch import TPCH

SUITES: dict[str, Suite] = {suite.name: suite for suite in (TPCH, TPCDS, TAXI, MICRO, SMALL, PIPELINES)}
SQL_SUITES = {name: suite for name, suite in SUITES.items() if suite is not PIPELINES}
"""The suites whose queries are SQL."""

__all__ = ["SQL_SUITES", "SUITES", "Query", "Step", "Suite", "Table"]
