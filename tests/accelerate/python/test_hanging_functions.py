"""Python functions that never return, in queries that are cancelled: the query ends and no worker process is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import exhaustive, worker_environment

SCRIPT = Path(__file__).with_name("hanging_function.py")
# Spark gives a Python worker two seconds to end by itself, then ends it
WORKER_SECONDS = 20.0


@pytest.mark.parametrize(
    "mode", ["enable", pytest.param("plan", marks=exhaustive), pytest.param("plain", marks=exhaustive)]
)
def test_a_function_that_hangs_ends_with_its_query(tmp_path: Path, mode: str) -> None:
    run = subprocess.run(
        [sys.executable, str(SCRIPT), mode, str(tmp_path / "t")],
        env={**os.environ, **worker_environment()}, capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    assert run.returncode == 0, run.stderr[-3000:]
    if mode != "plain":
        assert lines.pop(0) == {"in_engine": [True, True]}
    ends = [line for line in lines if "cancel" in line]
    assert [line["cancel"] for line in ends] == ["cancelJobGroup", "cancelAllJobs", "Ctrl-C", "stop"]
    for line in ends:
        expected = "KeyboardInterrupt" if line["cancel"] == "Ctrl-C" else "cancelled"
        assert line["error"] == expected, line
        if mode != "plain":  # after Ctrl-C, a worker of plain Spark goes on
            assert line["alive"] == 0, line
            assert line["worker_seconds"] < WORKER_SECONDS
    assert {"rows_after": [[0, 10], [1, 10]]} in lines
