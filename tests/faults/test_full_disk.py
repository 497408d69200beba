"""Local directories that are full, read-only or gone: a warning that names them, then Spark's outcome, and nothing is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import worker_environment
from tests.faults.full_disk import ROWS

pytestmark = pytest.mark.faults
_ANSWER = f"[({ROWS * (ROWS + 1) // 2}, '{'x' * 300}{ROWS - 1:06}')]"


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a run of full_disk.py printed, by case; its disk is a file system of 64 MB."""
    data, disk, other = (tmp_path_factory.mktemp(name) for name in ("data", "disk", "other"))
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a file system takes rights that this process does not have")
    try:
        run = subprocess.run(
            [sys.executable, str(Path(__file__).with_name("full_disk.py")), str(data), str(disk), str(other)],
            env={**os.environ, **worker_environment()}, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
    assert run.returncode == 0, run.stderr[-4000:]
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    return str(disk), {line["case"]: line for line in lines}


@pytest.mark.timeout(700)
@pytest.mark.parametrize(
    ("case", "setting"), [("full", "spark.local.dir"), ("full, in the driver", "TMPDIR")]
)
def test_spark_answers_where_the_engine_finds_no_room(reports: Any, case: str, setting: str) -> None:
    disk, by_case = reports
    report = by_case[case]
    assert report["engine"] == report["spark"] == _ANSWER
    (warning,) = report["warnings"]
    assert "No space left on device" in warning and disk in warning and setting in warning
    assert report["left"] == []


def test_a_context_names_the_directory(reports: Any) -> None:
    disk, by_case = reports
    report = by_case["full, in a context"]
    assert report["engine"].startswith(
        f"SpillError: cannot write to the scratch directory {disk}: No space left"
    )
    assert "TMPDIR" in report["engine"]
    assert report["left"] == []


def test_another_directory_of_the_list_is_used(reports: Any) -> None:
    report = reports[1]["full, and another directory"]
    assert report["engine"] == _ANSWER
    assert report["warnings"] == []


@pytest.mark.parametrize(
    ("case", "cause"), [("removed", "NoSuchFileException"), ("read-only", "FileSystemException")]
)
def test_where_spark_cannot_work_the_same_cause_is_raised(reports: Any, case: str, cause: str) -> None:
    """Spark writes its own files there, broadcast variables and shuffles, whoever runs the query."""
    report = reports[1][case]
    for engine in ("engine", "spark"):
        assert report[engine].startswith("Py4JJavaError: ") and cause in report[engine]


def test_no_file_stays_behind(reports: Any) -> None:
    assert reports[1]["stop"]["left"] == []
