"""Tables of Delta and Iceberg, in a process whose JVM has their JARs: the tests below ``tests/table_formats``."""

from __future__ import annotations

import os
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from tests.conftest import ROOT

SECONDS = 1500


@pytest.mark.timeout(SECONDS + 60)
@pytest.mark.parametrize("table_format", ["delta"])
def test_tables(table_format, tmp_path):
    report = tmp_path / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", "tests/table_formats"]
    variables = {**os.environ, "KQUERY_TABLE_FORMAT": table_format}
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS"):
        variables.pop(name, None)
    done = subprocess.run(
        command, cwd=ROOT, env=variables, timeout=SECONDS, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-20_000:]}\n{done.stderr[-2_000:]}"
    cases = list(ElementTree.parse(report).iter("testcase"))
    if all(case.find("skipped") is not None for case in cases):
        pytest.skip(str(cases[0].find("skipped").get("message")))
