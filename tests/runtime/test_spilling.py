"""Nothing that was spilled stays behind, however a query ends."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import worker_environment


@pytest.mark.faults
def test_no_scratch_file_is_left(tmp_path):
    directory, data, temporary = tmp_path / "local", tmp_path / "data", tmp_path / "tmp"
    for each in (directory, data, temporary):
        each.mkdir()
    run = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("spilling.py")), str(directory), str(data)],
        env={**os.environ, **worker_environment(), "TMPDIR": str(temporary)},
        capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    found = json.loads(run.stdout.strip().splitlines()[-1])
    assert [name for name, end in found.items() if end["left"]] == []
    assert all(end["spilled"] for end in found.values())
    assert found["success"]["said"].startswith("[Row(")
    assert "DIVIDE_BY_ZERO" in found["error"]["said"]
    assert not any(found[name]["said"].startswith("[Row(") for name in ("cancel", "kill"))
    assert list(temporary.rglob("kquery-spill*")) == []
