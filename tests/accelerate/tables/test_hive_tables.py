"""Tables in Hive's format: what its writers and SerDes leave in the options of a relation keeps no query from the engine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, worker_environment

FORMATS = [
    f"{kind}_{how}_{parts}"
    for kind in ("parquet", "orc")
    for how in ("stored", "using")
    for parts in ("true", "false")
]


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Coverage and verdict by table, from a session of its own: Hive support cannot be had in one that runs."""
    directory = tmp_path_factory.mktemp("hive")
    script = Path(__file__).with_name("hive_tables.py")
    done = subprocess.run(
        [sys.executable, str(script), str(directory)],
        cwd=directory,
        env={**os.environ, **worker_environment()},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert str(ROOT) in worker_environment()["PYTHONPATH"]
    lines = [line.split()[-3:] for line in done.stdout.splitlines() if line.endswith(("True", "False"))]
    return {table: (float(coverage), ok == "True") for table, coverage, ok in lines}


@pytest.mark.parametrize("table", FORMATS)
def test_a_table_in_hives_format_is_read_by_the_engine(reports, table):
    assert reports[table] == (1.0, True)
