"""Tables of Delta and Iceberg, files in object stores and on HDFS: the tests of ``tests/table_formats``, each in its own process.

Each runs with a release of PySpark that the format has JARs for, in the environment that ``make matrix`` makes for it.
``make tables`` runs all of them with every such release; ``make check`` runs the essential ones with one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests import matrix
from tests.conftest import ROOT, SPARK_VERSION
from tests.table_formats.conftest import LIBRARIES

SECONDS = 1500
# Both formats have JARs for this release.
ESSENTIAL = [("delta", (4, 1)), ("iceberg", (4, 1))]
EVERY = [(name, release) for name, by_release in LIBRARIES.items() for release in by_release]


@pytest.mark.timeout(SECONDS + 600)
@pytest.mark.parametrize(("table_format", "release"), ESSENTIAL)
def test_essential_tables(table_format: str, release: tuple[int, int], tmp_path: Path) -> None:
    _run_tests(table_format, release, tmp_path, "-m", "essential")


@pytest.mark.tables
@pytest.mark.timeout(SECONDS + 600)
@pytest.mark.parametrize(("table_format", "release"), EVERY)
def test_tables(table_format: str, release: tuple[int, int], tmp_path: Path) -> None:
    _run_tests(table_format, release, tmp_path, "-m", "essential or not essential")


def _run_tests(table_format: str, release: tuple[int, int], tmp_path: Path, *options: str) -> None:
    """Run ``tests/table_formats`` in a process of its own, and skip if all of its tests were skipped."""
    report = f"{tmp_path}/report.xml"
    python = (
        sys.executable if release == SPARK_VERSION else str(matrix.environment(".".join(map(str, release))))
    )
    command = [python, "-m", "pytest", "-q", f"--junitxml={report}", f"--table-format={table_format}"]
    command += ["tests/table_formats", *options]
    variables = {**os.environ, "PYSPARK_PYTHON": python}
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS", "SPARK_HOME", "PYSPARK_DRIVER_PYTHON"):
        variables.pop(name, None)
    done = subprocess.run(
        command, cwd=ROOT, env=variables, timeout=SECONDS, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-20_000:]}\n{done.stderr[-2_000:]}"
    cases = list(ElementTree.parse(report).iter("testcase"))
    reasons = [case.find("skipped") for case in cases]
    if all(reason is not None for reason in reasons):
        pytest.skip(str(next(reason.get("message") for reason in reasons if reason is not None)))
