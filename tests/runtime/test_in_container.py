"""A container with a memory limit: a GROUP BY of many keys spills before workers are killed."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import worker_environment

LIMIT_BYTES = 1536 << 20
_GROUPS = Path("/sys/fs/cgroup/memory")


@pytest.fixture
def group():
    """A memory cgroup of version 1 with a limit."""
    directory = _GROUPS / f"kquery_test_{os.getpid()}"
    try:
        directory.mkdir()
        (directory / "memory.limit_in_bytes").write_text(str(LIMIT_BYTES))
    except OSError:
        pytest.skip("this process may not make memory cgroups of version 1")
    yield directory
    deadline = time.monotonic() + 30
    while (directory / "cgroup.procs").read_text().split() and time.monotonic() < deadline:
        time.sleep(0.2)
    directory.rmdir()


@pytest.mark.faults
def test_no_worker_is_killed(group, tmp_path):
    script = Path(__file__).with_name("in_container.py")
    run = subprocess.run(
        [sys.executable, str(script), str(group), str(tmp_path), ""],
        env={**os.environ, **worker_environment()}, capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    found = json.loads(run.stdout.strip().splitlines()[-1])
    assert found["said"] == found["expected"]
    assert found["killed"] == 0
