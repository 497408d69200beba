"""The notebooks of ``examples/`` run from top to bottom, over the session of the run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kquery_spark as kq
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def cells(path: Path, kind: str) -> list[dict[str, Any]]:
    """A notebook's cells of one kind."""
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == kind]


def test_there_are_notebooks() -> None:
    assert [path.name for path in NOTEBOOKS] == ["quickstart.ipynb", "side_by_side.ipynb"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_kept_without_outputs(path: Path) -> None:
    for cell in cells(path, "code"):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(spark: SparkSession, shell: Any, path: Path) -> None:
    before = dict(spark.sparkContext.getConf().getAll())
    try:
        for number, cell in enumerate(cells(path, "code"), 1):
            source = "".join(cell["source"])
            source = re.sub(r"^ROWS = \S+", "ROWS = 3_000", re.sub(r"^RUNS = \S+", "RUNS = 1", source))
            result = shell.run_cell(source)
            assert result.success, (
                f"{path.name}, code cell {number}: {result.error_before_exec or result.error_in_exec}"
            )
    finally:
        kq.disable(spark)
        spark.catalog.dropTempView("trips")
        for name, value in before.items():
            if name.startswith("spark.kquery."):
                spark.conf.set(name, value)
