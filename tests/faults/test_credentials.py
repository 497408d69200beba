"""Credentials of object stores show nowhere where plain Spark does not show them, too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import worker_environment

pytestmark = pytest.mark.faults
#: Spark logs whole events of jobs, with all settings of the session, where a listener is slow.
_SLOW_EVENTS = "log of org.apache.spark.scheduler.AsyncEventQueue"
_SEARCHED = {
    "explain", "explain of a context", "plans of Spark", "plans of Spark as JSON", "schema and repr", "files of events",
    "files of local", "warnings", "qualify", "standard error", "event SparkListenerJobStart", "event SparkListenerTaskEnd",
    "event SparkListenerSQLExecutionStart", "error of s3a://secret-bucket/none", "error of a missing object",
}  # fmt: skip
#: Executors log each task at DEBUG level, and where its Python worker runs.
_SEARCHED_IN_CLUSTERS = {
    "executor: standard output", "executor: standard error", "executor: log of org.apache.spark.executor.Executor",
}  # fmt: skip


def search(directory: Path, engine: str, master: str) -> dict[str, Any]:
    """What a run of credentials.py prints."""
    script = Path(__file__).with_name("credentials.py")
    run = subprocess.run(
        [sys.executable, str(script), str(directory), engine, master],
        env={**os.environ, **worker_environment()}, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    log = directory / "logs" / "stderr"
    assert run.returncode == 0, log.read_text()[-4000:] if log.exists() else run.stderr[-4000:]
    report: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return report


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("master", ["local[2]", "local-cluster[2,1,2048]"])
def test_credentials_show_only_where_spark_shows_them(
    tmp_path_factory: pytest.TempPathFactory, master: str
) -> None:
    plain, engine = (search(tmp_path_factory.mktemp(name), name, master) for name in ("plain", "engine"))
    assert set(engine["searched"]) >= _SEARCHED | (_SEARCHED_IN_CLUSTERS if "cluster" in master else set())
    shown = {
        place: sorted(set(names) - set(plain["seen"].get(place, ())))
        for place, names in engine["seen"].items()
        if place != _SLOW_EVENTS
    }
    assert not {place: names for place, names in shown.items() if names}
    assert "event SparkListenerEnvironmentUpdate" in plain["seen"], (
        "Spark does not redact Azure's account keys"
    )
