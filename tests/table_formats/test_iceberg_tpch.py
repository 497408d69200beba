"""TPC-H over Iceberg tables with deleted rows or renamed columns: every query whole and equal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import tpch
from benchmarks.table_formats import make_tables
from tests.table_formats.queries import whole


@pytest.fixture(scope="module", autouse=True)
def tables(spark: Any, tpch_dir: Path) -> None:
    make_tables(spark, "iceberg", "renamed_deleted", tpch_dir, "")


@pytest.mark.parametrize("number", tpch.QUERIES)
def test_a_query_is_whole_and_equal(spark: Any, number: int) -> None:
    whole(spark, tpch.query(number))
