"""Limits of the operating system for one process: the engine respects them, or says which one it met."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
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


def test_files_may_not_grow(many_files: Path) -> None:
    """RLIMIT_FSIZE, as a quota: an error that names the directory, and the process lives on."""
    code = """
from kquery_spark.errors import SpillError
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    context.sql(QUERY).to_arrow()
except SpillError as error:
    print(error)
"""
    said = run(_QUERY + code, many_files)
    assert said.startswith(f"cannot write to the scratch directory {tempfile.gettempdir()}: File too large")


def test_a_small_address_space(many_files: Path) -> None:
    """RLIMIT_AS, which Spark sets by ``spark.executor.pyspark.memory``: the budget of a task follows it."""
    code = """
from pathlib import Path
context = kq.ExecutionContext(config=EngineConfig(parallelism=2))
context.register_parquet("t", sys.argv[1])
context.sql(QUERY).to_arrow()
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20), used + (256 << 20)))
print(context.sql(QUERY).to_arrow().to_pylist())
"""
    assert run(_QUERY + code, many_files) == _ANSWER


@pytest.fixture
def few_processes() -> Iterator[Path]:
    """A control group of version 1 in which three threads or processes may run."""
    directory = Path(f"/sys/fs/cgroup/pids/kquery_test_{os.getpid()}")
    try:
        directory.mkdir()
        (directory / "pids.max").write_text("3")
    except OSError:
        pytest.skip("this process may not make control groups of version 1 that limit processes")
    yield directory
    directory.rmdir()


def test_no_more_threads_can_start(many_files: Path, few_processes: Path) -> None:
    """An error, no hang, and the same context answers once there is room again."""
    code = f"""
group = "{few_processes}"
open(f"{{group}}/cgroup.procs", "w").write("0")
try:
    context.sql(QUERY).to_arrow()
except RuntimeError as error:
    print(error)
open(f"{{group}}/pids.max", "w").write("max")
print(context.sql(QUERY).to_arrow().to_pylist())
"""
    query = _QUERY.replace("parallelism=2", "parallelism=8").replace("(64, 64)", "(256, 256)")
    said = run(query + code, many_files)
    assert said.endswith(_ANSWER)
    assert said.startswith(("can't start new thread", _ANSWER))
