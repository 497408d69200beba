"""What a process really takes stays near the budget of its task, not only what the operator counts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import worker_environment

# The budget and the largest growth, in megabytes. "shuffle" is a join whose probe side has payloads of 80 MB.
LIMITS = dict.fromkeys(("aggregate", "sort", "window", "join"), (64, 176)) | {"shuffle": (16, 96)}


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux")
@pytest.mark.parametrize("kind", list(LIMITS))
def test_the_growth_of_the_process_is_bounded(kind):
    budget, most = LIMITS[kind]
    script = Path(__file__).with_name("peak_memory.py")
    run = subprocess.run(
        [sys.executable, str(script), kind, str(budget)],
        env={**os.environ, **worker_environment()}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    grown, rows, spilled = run.stdout.split()
    assert (int(rows), spilled) == (4_000_000, "True")
    assert int(grown) < most
