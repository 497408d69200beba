"""Scratch files: nameless, private, in turn over the directories, and gone with the process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from kquery_spark.errors import SpillError
from kquery_spark.physical.operators.base import Metrics
from kquery_spark.physical.spill import SpillDirectory
from kquery_spark.physical.spill_store import SpillStore, scratch_directories
from kquery_spark.types.batch import Batch
from tests.physical.harness import open_files

MEGABYTE = pa.py_buffer(b"x" * (1 << 20))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MB."""
    directory = tmp_path / "disk"
    directory.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(directory)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("mounting a file system takes rights that this process does not have")
    yield directory
    subprocess.run(["umount", "-l", str(directory)], check=True)


def use(monkeypatch: pytest.MonkeyPatch, *directories: Path) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", ",".join(map(str, directories)))


def batch_of(values: list[int]) -> Batch:
    rows = pa.record_batch({"v": values})
    return Batch.from_arrow(rows, rows.schema)


def free(directory: Path) -> int:
    status = os.statvfs(directory)
    return status.f_bfree * status.f_bsize


def test_blocks_are_read_by_their_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, tmp_path)
    store = SpillStore()
    first, second = store.append(pa.py_buffer(b"abc")), store.append(pa.py_buffer(b"defgh"))
    assert store.read(second, 5).to_pybytes() == b"defgh"
    assert store.read(first, 3).to_pybytes() == b"abc"
    with pytest.raises(SpillError, match=f"truncated a file in the scratch directory {tmp_path}"):
        store.read(second, 6)
    store.close()


def test_blocks_may_be_larger_than_one_system_call_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, tmp_path)
    pread = os.pread
    # Linux returns at most 0x7ffff000 bytes.
    monkeypatch.setattr(os, "pread", lambda fd, nbytes, offset: pread(fd, min(nbytes, 4), offset))
    store = SpillStore()
    first, second = store.append(pa.py_buffer(b"abc")), store.append(pa.py_buffer(b"0123456789"))
    assert store.read(second, 10).to_pybytes() == b"0123456789"
    assert store.read(first, 3).to_pybytes() == b"abc"
    with pytest.raises(SpillError, match="truncated"):
        store.read(second, 11)
    store.close()


def test_a_file_has_no_name_and_only_its_owner_may_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, tmp_path)
    before = os.umask(0)
    try:
        store = SpillStore()
    finally:
        os.umask(before)
    store.append(MEGABYTE)
    (link,) = open_files(tmp_path)
    assert list(tmp_path.iterdir()) == [] and link.endswith("(deleted)")
    assert os.fstat(store._files[0].handle.fileno()).st_mode & 0o777 == 0o600
    store.close()
    assert open_files(tmp_path) == []


def test_directories_take_turns_and_those_that_are_gone_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    first.mkdir()
    second.mkdir()
    use(monkeypatch, first, second, tmp_path / "gone")
    stores = [SpillStore() for _ in range(4)]
    assert (len(open_files(first)), len(open_files(second))) == (2, 2)
    assert all(s.close() is None for s in stores)
    use(monkeypatch, tmp_path / "gone")
    assert scratch_directories() == [tempfile.gettempdir()]
    monkeypatch.delenv("SPARK_LOCAL_DIRS")
    monkeypatch.setattr(tempfile, "tempdir", str(first))
    assert scratch_directories() == [str(first)]


def test_a_read_only_disk_is_passed_over_or_named(
    tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    use(monkeypatch, small_disk)
    with pytest.raises(SpillError, match=f"scratch directory {small_disk}: Read-only.*spark.local.dir"):
        SpillStore()
    use(monkeypatch, small_disk, tmp_path)
    stores = [SpillStore() for _ in range(3)]
    assert len(open_files(tmp_path)) == 3
    assert all(s.close() is None for s in stores)


def spill_megabytes(batch: Batch) -> None:
    with SpillDirectory(Metrics()) as spill:
        file = spill.file(batch.schema)
        for _ in range(32):
            file.append(batch)


def test_a_full_disk_is_named_and_is_empty_again_at_once(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, small_disk)
    before = free(small_disk)
    batch = batch_of(list(range(1 << 17)))
    with pytest.raises(SpillError, match=f"{small_disk}: No space left on device; make room there"):
        spill_megabytes(batch)
    assert free(small_disk) == before


def test_blocks_go_to_the_next_disk_when_one_is_full(
    tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, small_disk, tmp_path)
    before = free(small_disk)
    for _ in range(2):  # each directory is the first one once
        store = SpillStore()
        blocks = [pa.py_buffer(bytes([i]) * (1 << 20)) for i in range(40)]
        places = [store.append(block) for block in blocks]
        assert all(store.read(p, 1 << 20).equals(b) for p, b in zip(places, blocks, strict=True))
        store.close()
    assert free(small_disk) == before and open_files(tmp_path) == []


def test_the_advice_is_about_the_directory_that_is_used(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = batch_of(list(range(1 << 17)))
    use(monkeypatch, small_disk)
    with pytest.raises(SpillError, match=r"spark\.local\.dir"):
        spill_megabytes(batch)
    monkeypatch.delenv("SPARK_LOCAL_DIRS")
    monkeypatch.setattr(tempfile, "tempdir", str(small_disk))
    with pytest.raises(SpillError, match=f"{small_disk}: No space left on device.*TMPDIR"):
        spill_megabytes(batch)


def test_no_temporary_directory_is_an_error_of_spilling(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container whose root file system is read-only."""
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/proc", "/nowhere"])
    with pytest.raises(SpillError, match=r"No usable temporary directory found in .*/proc.*TMPDIR"):
        SpillStore()


def test_many_runs_are_one_open_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, tmp_path)
    batch = batch_of([1, 2, 3])
    with SpillDirectory(Metrics()) as spill:
        runs = [spill.file(batch.schema)]
        runs += [spill.file(batch.schema, share_store_with=runs[0]) for _ in range(500)]
        for number, run in enumerate(runs):
            run.append(batch.slice(number % 3))
        partitions = spill.partitions(batch.schema)
        partitions[3].append(batch)
        assert len(open_files(tmp_path)) == 2
        for number, run in enumerate(runs):
            assert [b.columns[0].to_pylist() for b in run.read()] == [[1, 2, 3][number % 3 :]]
        assert [p.rows for p in partitions] == [0, 0, 0, 3, *[0] * 12]
    assert open_files(tmp_path) == []


_SPILLS = """
import sys
import pyarrow as pa
from kquery_spark.physical.spill_store import SpillStore
store = SpillStore()
store.append(pa.py_buffer(b"x" * (8 << 20)))
print("spilled", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_stays_behind_a_killed_process(small_disk: Path, number: signal.Signals) -> None:
    before = free(small_disk)
    environment = {**os.environ, "SPARK_LOCAL_DIRS": str(small_disk), "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", _SPILLS], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None and process.stdout.readline() == b"spilled\n"
        assert free(small_disk) <= before - (8 << 20)
        process.send_signal(number)
        process.wait(30)
    assert free(small_disk) == before
    assert list(small_disk.iterdir()) == []
