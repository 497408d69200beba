"""Python daemons that die between queries or cannot fork: the next query ends as one of plain Spark's Python functions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import worker_environment
from tests.faults.daemons import ROWS

pytestmark = pytest.mark.faults
_ANSWER = f"[({ROWS * (ROWS - 1) // 2},)]"


@pytest.fixture(scope="module")
def group() -> Iterator[Path]:
    """A control group of version 1 that can limit processes; a path that does not exist where it may not be made."""
    directory = Path(f"/sys/fs/cgroup/pids/kquery_test_daemons_{os.getpid()}")
    made = os.access(directory.parent, os.W_OK)
    if made:
        directory.mkdir()
    yield directory
    if made:
        directory.rmdir()


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory, group: Path) -> dict[str, dict[str, Any]]:
    """What a run of daemons.py printed, by case."""
    script = Path(__file__).with_name("daemons.py")
    run = subprocess.run(
        [sys.executable, str(script), str(tmp_path_factory.mktemp("data")), str(group)],
        env={**os.environ, **worker_environment()}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-4000:]
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    return {line["case"]: line for line in lines}


@pytest.mark.timeout(700)
@pytest.mark.parametrize("engine", ["the engine", "Spark"])
def test_workers_outlive_their_daemon(reports: dict[str, dict[str, Any]], engine: str) -> None:
    report = reports[f"daemons, {engine}"]
    assert report["hit"] >= 1
    assert report["before"] == report["after"] == _ANSWER
    assert report["warnings"] == []


def test_idle_workers_that_die_with_their_daemon(reports: dict[str, dict[str, Any]]) -> None:
    """Spark gives the next task to a worker that is dead, and fails; then Spark runs the engine's query without Python."""
    engine, spark = reports["daemons and workers, the engine"], reports["daemons and workers, Spark"]
    assert engine["hit"] >= 2 and spark["hit"] >= 2
    assert engine["before"] == engine["after"] == spark["before"] == _ANSWER
    assert len(engine["warnings"]) == (spark["after"] != _ANSWER)
    assert all("so Spark runs the query again" in warning for warning in engine["warnings"])


def test_a_daemon_that_cannot_fork(reports: dict[str, dict[str, Any]], group: Path) -> None:
    """Spark's functions fail; so does the engine, and Spark runs the query again without Python."""
    if not group.exists():
        pytest.skip("this process may not make control groups of version 1 that limit processes")
    report = reports["forks, the engine"]
    assert report["hit"] >= 1
    assert report["after"] == _ANSWER
