"""Limits of the operating system for one process: the engine respects them, or says which one it met."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import worker_environment

_FILES = 80

# More files than the process may open; the budget makes aggregations and sorts spill.
_QUERY = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
import kquery_spark as kq
from kquery_spark.config.engine import EngineConfig
context = kq.ExecutionContext(config=EngineConfig(parallelism=2, memory_bytes=64 << 10))
context.register_parquet("t", sys.argv[1])
QUERY = "SELECT k, count(DISTINCT v) AS n FROM t GROUP BY k ORDER BY n DESC, k LIMIT 2"
"""
_ANSWER = str([{"k": k, "n": _FILES} for k in range(2)])


@pytest.fixture(scope="module")
def many_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """80 files of 1,000 rows: ``v`` is unique, and ``k`` has each of 1,000 values once in each file."""
    directory = tmp_path_factory.mktemp("many")
    for i in range(_FILES):
        rows = {"k": range(1000), "v": range(i * 1000, (i + 1) * 1000)}
        pq.write_table(
            pa.table({name: list(values) for name, values in rows.items()}), directory / f"{i}.parquet"
        )
    return directory


def run(code: str, directory: Path) -> str:
    """What a process of its own prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, str(directory)],
        env={**os.environ, **worker_environment()}, capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_more_files_than_a_process_may_open(many_files: Path) -> None:
    assert run(f"{_QUERY}\nprint(context.sql(QUERY).to_arrow().to_pylist())", many_files) == _ANSWER


def test_files_that_are_kept_open_make_room_for_others(many_files: Path) -> None:
    """The user's own files leave five handles: what the engine keeps open from earlier reads is closed."""
    code = """
context.sql(QUERY).to_arrow()
mine = []
try:
    while True:
        mine.append(open("/dev/null"))
except OSError:
    for file in mine[-5:]:
        file.close()
print(context.sql(QUERY).to_arrow().to_pylist())
"""
    assert run(_QUERY + code, many_files) == _ANSWER
