"""The Python of the README and of the guide runs as it stands there, page by page, over the taxi data."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kquery_spark as kq
from tests.conftest import ROOT
from tests.docs.settings_page import with_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GUIDE = ROOT / "docs" / "guide"
PAGES = [ROOT / "README.md", ROOT / "docs" / "index.md", *sorted(GUIDE.glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
IMPORT = re.compile(r"^(?:from|import) (\w+)", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_of_a_page_runs(spark: SparkSession, taxi_dir: Path, page: Path) -> None:
    blocks = BLOCK.findall(page.read_text())
    if not blocks:
        pytest.skip("no Python on this page")
    for module in sorted(set(IMPORT.findall("\n".join(blocks)))):
        pytest.importorskip(module)  # a page on other libraries runs where these are
    before = dict(spark.sparkContext.getConf().getAll())
    names: dict[str, Any] = {}
    try:
        for number, block in enumerate(blocks):
            exec(
                compile(
                    block.replace("data/trips", str(taxi_dir / "parquet")),
                    f"{page.name}, block {number + 1}",
                    "exec",
                ),
                names,
            )
    finally:
        kq.disable(spark)
        spark.conf.unset("spark.sql.mapKeyDedupPolicy")  # set by ibis
        for view in ("trips", "tripdata"):
            spark.catalog.dropTempView(view)
        for name, value in before.items():
            if name.startswith("spark.kquery."):
                spark.conf.set(name, value)


def test_the_first_example_of_the_readme_needs_no_data(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example = BLOCK.findall((ROOT / "README.md").read_text())[0]
    assert "data/trips" in example
    try:
        exec(compile(example.replace("data/trips", str(tmp_path / "trips")), "README.md", "exec"), {})
    finally:
        spark.catalog.dropTempView("tripdata")
    shown = capsys.readouterr().out
    assert "|passenger_count|max(fare_amount)|" in shown
    assert "same as Spark SQL: yes (7 rows, 2 columns; coverage 100%" in shown


def test_the_tables_of_settings_are_those_of_the_code() -> None:
    page = (GUIDE / "tuning.md").read_text()
    assert with_tables(page) == page, "python -m tests.docs.settings_page docs/guide/tuning.md"


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"])
def test_links_of_the_root_lead_to_files(page: str) -> None:
    """The site's build checks those of the other pages."""
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / page).read_text())
    assert [target for target in targets if not (ROOT / target).exists()] == []
