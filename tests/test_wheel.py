"""The wheel in an environment of its own, as ``pip install`` makes it: the README's first example runs (``make wheel``)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = [
    pytest.mark.wheel,
    pytest.mark.timeout(1800),  # PySpark is a large download, and pip builds a wheel of it
]
EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: The lowest release that is allowed, the newest patch of it, and the newest release.
PYSPARK = ("pyspark==3.5.1", "pyspark~=3.5.0", "pyspark")


def environment(directory: Path, *packages: str) -> Path:
    """The programs of a new environment with some packages."""
    subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True)
    programs = directory / "bin"
    install = [str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, *packages], check=True)
    return programs


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made as a release makes it: the source distribution, and the wheel of that."""
    directory = tmp_path_factory.mktemp("wheel")
    python = environment(directory / "build", "build") / "python"
    subprocess.run([str(python), "-m", "build", "--outdir", str(directory), str(ROOT)], check=True)
    (wheel,) = directory.glob("*.whl")
    return wheel


@pytest.mark.parametrize("pyspark", PYSPARK)
def test_the_first_example_of_the_readme_runs(wheel: Path, tmp_path: Path, pyspark: str) -> None:
    programs = environment(tmp_path / "env", str(wheel), pyspark)
    example = EXAMPLE.search((ROOT / "README.md").read_text())
    assert example is not None
    script = tmp_path / "example.py"
    script.write_text(f"{example[1]}\nprint('installed in', kq.__file__)\n")
    found = ("PYTHONPATH", "SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    variables = {name: value for name, value in os.environ.items() if name not in found}
    variables |= {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "SPARK_LOCAL_IP": "127.0.0.1"}
    for command in (
        [str(programs / "python"), str(script)],
        [
            str(programs / "kquery-spark"),
            "verify",
            "SELECT id % 7 AS k, count(*) AS n FROM range(1000) GROUP BY 1",
        ],
    ):
        run = subprocess.run(
            command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stdout + run.stderr
        assert "same as Spark SQL: yes (" in run.stdout
        if str(script) in command:
            assert f"installed in {tmp_path / 'env'}" in run.stdout
