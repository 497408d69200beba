"""The suites by name."""

from __future__ import annotations

from benchmarks.suites.base import Query, Suite, Table
from benchmarks.suites.micro import MICRO
from benchmarks.suites.small import SMALL
from benchmarks.suites.taxi import TAXI
from benchmarks.suites.tpcds import TPCDS
from benchmarks.suites.tpch import TPCH

SUITES: dict[str, Suite] = {suite.name: suite for suite in (TPCH, TPCDS, TAXI, MICRO, SMALL)}

__all__ = ["SUITES", "Query", "Suite", "Table"]
