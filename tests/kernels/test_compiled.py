"""The compiled kernels: made in the background for whoever comes next, done without where they cannot be had."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kquery_spark.kernels import compiled

_WAITING = """
import time
from kquery_spark.kernels import compiled

compiled.load()
assert compiled.kernels() is None  # another process compiles
for _ in range(600):
    compiled.load()
    if compiled.kernels() is not None:
        break
    time.sleep(0.1)
print(compiled.kernels().__name__)
"""
_AGAIN = """
from kquery_spark.kernels import compiled

compiled.load()
kernels = compiled.kernels()
print(sum(sum(f.stats.cache_misses.values()) for f in (kernels.codes, kernels.codes_of, kernels.where, kernels.separators)))
"""
_NEVER = """
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
import kquery_spark as kq
from kquery_spark.kernels import compiled

compiled.load()
assert compiled.kernels() is None
context = kq.ExecutionContext()
context.register_arrow("t", pa.table({"x": [1, 2, 3]}))
print(context.sql("SELECT sum(x) AS s FROM t").to_arrow()["s"][0])
"""
_HIDDEN = """
import importlib.util

find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "numba" else find(name, *more)
"""


def run(code: str, cache: Path) -> str:
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_another_process_compiles_once_for_all(tmp_path):
    assert run(_WAITING, tmp_path) == "kquery_spark.kernels.loops"
    (folder,) = (tmp_path / "kquery_spark").iterdir()
    assert folder.stat().st_mode & 0o077 == 0  # what is loaded from there is code
    assert run(_AGAIN, tmp_path) == "0"


def test_queries_run_where_nothing_can_be_kept(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert run(_NEVER, blocked) == "6"


def test_queries_run_without_numba(tmp_path):
    assert run(_HIDDEN + _NEVER, tmp_path) == "6"


def test_what_does_not_compile_is_left_for_a_day(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled, "_folder", lambda: tmp_path)
    monkeypatch.setattr(compiled, "_KERNELS", "kquery_spark.sources.no_such_module")
    monkeypatch.setattr(
        compiled, "_State", type("_State", (), {"kernels": None, "next_look": 0.0, "requests": 1})
    )
    started = []
    monkeypatch.setattr(compiled, "_start", started.append)
    with pytest.raises(ModuleNotFoundError):
        compiled.compile_now()
    compiled.load()
    assert started == []
    assert compiled._State.next_look == float("inf")
    yesterday = time.time() - 100_000
    os.utime(tmp_path / "failed", (yesterday, yesterday))
    compiled._State.next_look = 0.0
    compiled.load()
    assert started == [tmp_path]


def test_one_process_compiles_at_a_time(tmp_path, monkeypatch):
    assert compiled._is_first(tmp_path)
    assert not compiled._is_first(tmp_path)
    monkeypatch.setattr(compiled, "_STALE_LOCK_SECONDS", -1.0)  # whoever started has failed
    assert compiled._is_first(tmp_path)


_LATER = """
import time
from kquery_spark.kernels import compiled

compiled.look_later()  # no request yet
assert [compiled.kernels() for _ in range(compiled._WARMUP_CALLS)] == [None] * compiled._WARMUP_CALLS
time.sleep(0.5)
assert compiled.kernels() is None
for _ in range(600):
    if compiled.kernels() is not None:
        break
    time.sleep(0.1)
print(compiled.kernels().__name__)
"""


def test_a_thread_looks_for_kernels_once_many_chunks_were_asked_for(tmp_path):
    run("from kquery_spark.kernels import compiled; compiled.compile_now()", tmp_path)
    assert run(_LATER, tmp_path) == "kquery_spark.kernels.loops"


@pytest.mark.parametrize(
    "name", ["codes", "codes_of", "where", "matching", "matching_of", "separators", "field_texts"]
)
def test_kernels_let_other_threads_run(name):
    kernels = compiled.compile_now()
    assert kernels is not None
    assert getattr(kernels, name).targetoptions["nogil"]


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_cache_that_others_can_write_to_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = compiled._folder.__wrapped__()
    assert folder is not None and folder.stat().st_mode & 0o777 == 0o700
    for place, mode in ((folder, 0o720), (folder, 0o702), (folder.parent, 0o777)):
        before = place.stat().st_mode
        place.chmod(mode)
        assert compiled._folder.__wrapped__() is None, "numba would unpickle what others put there"
        place.chmod(before)
    assert compiled._folder.__wrapped__() == folder
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    assert compiled._folder.__wrapped__() is None
