"""After ``spark.stop()`` an accelerated frame raises the same errors as Spark's, also if another session is started."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import worker_environment


def test_frames_of_a_stopped_session_raise_the_errors_of_spark(tmp_path):
    script = Path(__file__).with_name("stopped_session.py")
    run = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "rows")],
        env={**os.environ, **worker_environment()}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    results = json.loads(run.stdout.strip().splitlines()[-1])
    assert results["before"] == 96
    for state in ("stopped", "new session"):
        assert results[state]["engine"] == results[state]["spark"]
        assert not any(outcome.startswith("answer") for outcome in results[state]["engine"].values())
    assert results["never seen"].pop("disable") == "None"
    for error in results["never seen"].values():
        assert error.startswith("KQueryError: this Spark session has been stopped; create a new one")
