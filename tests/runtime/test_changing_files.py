"""A file that changes while queries read it: the process survives, and says which file, or gives the planned one's answer."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import exhaustive, worker_environment


@pytest.mark.parametrize("place", ["context", "driver", pytest.param("workers", marks=exhaustive)])
@pytest.mark.parametrize("times", ["1", pytest.param("6", marks=exhaustive)])
def test_a_changed_file_is_an_error_or_the_answer_before(tmp_path, place, times):
    script = Path(__file__).with_name("changing_files.py")
    run = subprocess.run(
        [sys.executable, str(script), place, str(tmp_path), times],
        env={**os.environ, **worker_environment()}, capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    assert run.returncode == 0, (run.returncode, run.stderr[-3000:])
    found = json.loads(run.stdout.strip().splitlines()[-1])
    odd = {
        case: {what: n for what, n in counts.items() if what not in ("answer", "error")}
        for case, counts in found.items()
    }
    assert {case: what for case, what in odd.items() if what} == {}
    # a file that was replaced may still be open, and Spark may have kept what a stage in workers gave
    if place == "context":
        assert all(counts.get("error", 0) for case, counts in found.items() if "replace" not in case)
