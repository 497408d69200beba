"""TPC-H over Delta tables with deleted rows and mapped columns: every query whole and equal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import tpch
from benchmarks.table_formats import make_tables
from tests.table_formats.queries import whole


@pytest.fixture(scope="module", autouse=True)
def tables(spark: Any, tpch_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    make_tables(spark, "delta", "mapped_deleted", tpch_dir, str(tmp_path_factory.mktemp("delta")))


@pytest.mark.parametrize("number", tpch.QUERIES)
def test_a_query_is_whole_and_equal(spark: Any, number: int) -> None:
    whole(spark, tpch.query(number))
