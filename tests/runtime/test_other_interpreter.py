"""Workers whose Python is not the driver's: a virtual environment that is not activated, a cluster without the package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.conftest import ROOT, worker_environment

pytestmark = pytest.mark.faults

SCRIPT = Path(__file__).with_name("other_interpreter.py")


@pytest.fixture(scope="module")
def pythons(tmp_path_factory) -> tuple[Path, Path]:
    """Two environments with all of this one's packages but for ours, which only the first one has."""
    return (
        _environment(tmp_path_factory.mktemp("with"), str(ROOT)),
        _environment(tmp_path_factory.mktemp("without"), None),
    )


def _environment(directory: Path, extra: str | None) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True)
    packages = next((directory / "lib").glob("python*/site-packages"))
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "kquery" not in entry.name and not (packages / entry.name).exists():
            (packages / entry.name).symlink_to(entry)
    if extra is not None:
        (packages / "ours.pth").write_text(f"{extra}\n")
    return directory / "bin"


def run(tmp_path: Path, python: Path, kind: str, master: str, **environment: str) -> dict:
    unset = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH")
    inherited = {**os.environ, **worker_environment()}
    job = subprocess.run(
        [str(python / "python"), str(SCRIPT), str(tmp_path), kind, master],
        env={k: v for k, v in inherited.items() if k not in unset} | environment,
        cwd=tmp_path, capture_output=True, text=True, timeout=400,
    )  # fmt: skip
    assert job.returncode == 0, job.stderr[-3000:]
    return json.loads(job.stdout.strip().splitlines()[-1])


def test_a_virtual_environment_that_is_not_activated(tmp_path, pythons):
    """``python3`` on the PATH lacks the package, and Java's temporary directory has a path too long for a socket."""
    ours, theirs = pythons
    path = os.pathsep.join([str(theirs), os.environ["PATH"]])
    plain = run(tmp_path, ours, "plain", "local[2]", PATH=path)
    long = tmp_path / ("long" * 20)
    long.mkdir()
    engine = run(
        tmp_path, ours, "engine", "local[2]", PATH=path, JAVA_TOOL_OPTIONS=f"-Djava.io.tmpdir={long}"
    )
    assert engine["answers"] == plain["answers"]
    assert plain["answers"]["surroundings"][0][0] == str(theirs / "python3")
    assert engine["planned"] and engine["accelerated"]
    assert engine["after"] and engine["untouched"]
    assert engine["warnings"] == []
    assert "error" not in engine


def test_a_cluster_without_the_package(tmp_path, pythons):
    """Plain Spark's answers, and one sentence that names both sides."""
    ours, theirs = pythons
    master = "local-cluster[2,1,1024]"
    environment = {"PYSPARK_PYTHON": str(theirs / "python")}
    plain = run(tmp_path, ours, "plain", master, **environment)
    engine = run(tmp_path, ours, "engine", master, **environment)
    assert engine["answers"] == plain["answers"]
    assert engine["after"] and engine["untouched"]
    assert not engine["planned"] and not engine["accelerated"]
    (warning,) = engine["warnings"]
    (reason,) = engine["reasons"]
    assert warning == f"Spark runs the queries of this session: {reason}"
    assert reason in engine["error"]
    assert str(theirs / "python") in reason and str(ours / "python") in reason
    assert "No module named 'kquery_spark'" in reason
