"""Processes of a cluster that are killed while a task runs in them: Spark runs the task elsewhere, the answer is the same."""

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

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What a run of cluster.py printed, by fault."""
    directories = [str(tmp_path_factory.mktemp(name)) for name in ("data", "local", "scratch")]
    script = Path(__file__).with_name("cluster.py")
    run = subprocess.run(
        [sys.executable, str(script), *directories],
        env={**os.environ, **worker_environment()}, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-4000:]
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    return {line["fault"]: line for line in lines}


@pytest.mark.timeout(1000)
@pytest.mark.parametrize("fault", FAULTS)
def test_the_answer_survives(reports: dict[str, dict[str, Any]], fault: str) -> None:
    report = reports[fault]
    assert report["killed"]
    assert report["right"]


@pytest.mark.parametrize("fault", FAULTS)
def test_the_kill_ended_a_task_of_the_stage(reports: dict[str, dict[str, Any]], fault: str) -> None:
    """By Spark's event log: the task that held failed, and it belongs to this query and to a stage of this kind."""
    report = reports[fault]
    assert report["group"] == fault
    assert report["stage_of_task"]
    assert "MapInArrow" in report["operators"]
    assert bool(report["parents"]) is ("reduce" in fault)
    if fault.startswith("an executor"):
        assert report["ended"] == "ExecutorLostFailure"
    else:
        assert report["ended"] == "ExceptionFailure"  # "Python worker exited unexpectedly (crashed)"
        assert "Python worker exited unexpectedly" in report["description"]


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if "engine" in fault])
def test_tasks_spilled(reports: dict[str, dict[str, Any]], fault: str) -> None:
    """Otherwise the next test could not fail."""
    assert reports[fault]["spilled"] > 0


@pytest.mark.parametrize("fault", [*FAULTS, "stop"])
def test_no_files_stay_behind(reports: dict[str, dict[str, Any]], fault: str) -> None:
    assert reports[fault]["left"] == []
