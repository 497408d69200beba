"""An executor that dies in the middle of a query: Spark runs its tasks elsewhere, and the answer is the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import worker_environment


@pytest.mark.faults
def test_the_answer_survives_a_killed_executor(tmp_path):
    script = Path(__file__).with_name("lost_executor.py")
    run = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        env={**os.environ, **worker_environment()}, capture_output=True, text=True, timeout=400,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    found = json.loads(run.stdout.strip().splitlines()[-1])
    assert found["lost"] == 1
    assert len(found["engine"]) == 50
    assert found["engine"] == found["expected"]
