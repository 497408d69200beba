"""The 22 TPC-H queries have one answer, whatever settings users have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import worker_environment
from tests.faults.configured import DYNAMIC, STATIC

pytestmark = pytest.mark.faults


@pytest.fixture(scope="module")
def wrong(tpch_dir: Path) -> dict[str, dict[str, Any]]:
    """What a run of configured.py printed, by configuration."""
    run = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("configured.py")), str(tpch_dir)],
        env={**os.environ, **worker_environment()}, capture_output=True, text=True, timeout=1500,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-4000:]
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    return {line["configuration"]: line["wrong"] for line in lines}


@pytest.mark.timeout(1600)
@pytest.mark.parametrize("name", [*STATIC, *DYNAMIC])
def test_all_queries_are_whole_and_equal(wrong: dict[str, dict[str, Any]], name: str) -> None:
    assert wrong[name] == {}
