"""The house keeps its shape: the import contracts of pyproject.toml hold."""

import os
import subprocess
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_directory_imports_only_from_directories_below_it():
    linter = Path(sysconfig.get_path("scripts")) / "lint-imports"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [linter, "--no-cache"], cwd=ROOT, env=env, capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "0 broken" in run.stdout
