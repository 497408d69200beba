"""Processes of a cluster that are killed in the middle of a query: Spark runs their tasks elsewhere, the answer is the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import worker_environment
from tests.faults.cluster import FAULTS

pytestmark = pytest.mark.skipif(
    "KQUERY_FAULTS" not in os.environ, reason="takes minutes: make faults runs it"
)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What a run of cluster.py printed, by fault."""
    data, local = (str(tmp_path_factory.mktemp(name)) for name in ("data", "local"))
    script = Path(__file__).with_name("cluster.py")
    run = subprocess.run(
        [sys.executable, str(script), data, local],
        env={**os.environ, **worker_environment()}, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-4000:]
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    return {line["fault"]: line for line in lines}


@pytest.mark.timeout(1000)
@pytest.mark.parametrize("fault", FAULTS)
def test_the_answer_survives(reports: dict[str, dict[str, Any]], fault: str) -> None:
    report = reports[fault]
    assert report["killed"] == 1
    assert report["right"]


@pytest.mark.parametrize("fault", [*FAULTS, "stop"])
def test_no_files_stay_behind(reports: dict[str, dict[str, Any]], fault: str) -> None:
    assert reports[fault]["left"] == []
