"""The loops are compiled once, in the background, and queries run without them until then, or where numba is missing."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from packaging.requirements import Requirement

from kquery_spark.kernels import compiled
from kquery_spark.kernels.compiled import (
    _SHARED_SOURCES,
    AGGREGATE_LOOPS,
    ALL_LOOPS,
    FILE_LOOPS,
    JSON_LOOPS,
    VARIANT_LOOPS,
    CompiledLoops,
    _cache_directory,
    _claim_compilation,
)
from tests.conftest import ROOT, exhaustive

PACKAGE = "kquery_spark.kernels.loops"

_WAITING = """
import time
from kquery_spark.kernels.compiled import FILE_LOOPS

FILE_LOOPS.load()
assert FILE_LOOPS.kernels() is None  # another process compiles
for _ in range(2400):
    FILE_LOOPS.load()
    if FILE_LOOPS.kernels() is not None:
        break
    time.sleep(0.1)
print(FILE_LOOPS.kernels().__name__)
"""
_AGAIN = """
from kquery_spark.kernels.compiled import FILE_LOOPS

FILE_LOOPS.load()
kernels = FILE_LOOPS.kernels()
print(sum(sum(f.stats.cache_misses.values()) for f in (kernels.decode_indices, kernels.filter_chunk, kernels.decode_values, kernels.separators)))
"""
_NEVER = """
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
import kquery_spark as kq
from kquery_spark.kernels.compiled import FILE_LOOPS

FILE_LOOPS.load()
assert FILE_LOOPS.kernels() is None
context = kq.ExecutionContext()
context.register_arrow("t", pa.table({"x": [1, 2, 3]}))
print(context.sql("SELECT sum(x) AS s FROM t").to_arrow()["s"][0])
"""
_HIDDEN = """
import importlib.abc, importlib.util, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numba", "llvmlite"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "numba" else find(name, *more)
"""
_WITHOUT_NUMBA = """
import json
import kquery_spark as kq
from kquery_spark.errors import Unsupported
from kquery_spark.frontends.catalyst.expressions.translator import require_loops
from kquery_spark.kernels.compiled import FILE_LOOPS, AGGREGATE_LOOPS, JSON_LOOPS, VARIANT_LOOPS

context = kq.ExecutionContext()
context.register_parquet("p", f"{root}/t.parquet")
context.register_csv("c", f"{root}/t.csv")
query = "SELECT p.k, count(*) AS n, max(s) AS s, max(get_json_object(s, '$.x')) AS x FROM p JOIN c USING (k) GROUP BY p.k ORDER BY p.k"
print(json.dumps(context.sql(query).collect()))
for loops in (FILE_LOOPS, AGGREGATE_LOOPS, JSON_LOOPS, VARIANT_LOOPS):
    assert not loops.are_ready_or_start_compiling()
    try:
        require_loops(loops, "f")
    except Unsupported as declined:
        assert str(declined) == "the loops that f needs are compiled by numba, which is not installed"
    else:
        raise AssertionError(loops)
assert "numba" not in sys.modules
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


@pytest.fixture(scope="module")
def compiled_cache(tmp_path_factory):
    """A cache that a background process has filled, while the process that started it was waiting."""
    cache = tmp_path_factory.mktemp("cache")
    assert run(_WAITING, cache) == "kquery_spark.kernels.loops"
    return cache


@exhaustive
def test_another_process_compiles_once_for_all(compiled_cache):
    (directory,) = (compiled_cache / "kquery_spark").iterdir()
    assert directory.stat().st_mode & 0o077 == 0  # numba loads code from this directory
    assert run(_AGAIN, compiled_cache) == "0"


def test_queries_run_where_nothing_can_be_kept(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert run(_NEVER, blocked) == "6"


def test_queries_run_without_numba(tmp_path):
    assert run(_HIDDEN + _NEVER, tmp_path) == "6"


def test_files_and_json_are_read_without_numba(tmp_path):
    rows = pa.table({"k": [i % 3 for i in range(3000)], "s": [f'{{"x": {i}}}' for i in range(3000)]})
    pq.write_table(rows, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("k\n0\n1\n2\n")
    code = f"{_HIDDEN}\nroot = {str(tmp_path)!r}\n{_WITHOUT_NUMBA}"
    result = json.loads(run(code, tmp_path))
    assert [(row["k"], row["n"], row["s"], row["x"]) for row in result] == [
        (k, 1000, max(f'{{"x": {i}}}' for i in range(k, 3000, 3)), max(str(i) for i in range(k, 3000, 3)))
        for k in range(3)
    ]


def test_pip_installs_numba_only_where_it_has_wheels():
    (numba,) = re.findall(r'"(numba>=[^"]*)"', (ROOT / "pyproject.toml").read_text())
    marker = Requirement(numba).marker
    assert marker is not None
    known = {
        "platform_machine": "x86_64",
        "platform_python_implementation": "CPython",
        "python_version": "3.13",
    }
    assert marker.evaluate(known)
    for other in (
        {"platform_machine": "ppc64le"},
        {"platform_python_implementation": "PyPy"},
        {"python_version": "3.15"},
    ):
        assert not marker.evaluate({**known, **other}), other


def test_what_does_not_compile_is_left_for_a_day(tmp_path, monkeypatch):
    monkeypatch.setattr(compiled, "_cache_directory", lambda _: tmp_path)
    started = []
    monkeypatch.setattr(compiled, "_start_compiler", started.append)
    with pytest.raises(ModuleNotFoundError):
        CompiledLoops("no_such_module").compile_now()
    CompiledLoops("no_such_module").load()
    assert started == []
    yesterday = time.time() - 100_000
    os.utime(tmp_path / "failed", (yesterday, yesterday))
    loops = CompiledLoops("no_such_module")
    assert not loops.are_ready_or_start_compiling()
    assert not loops.are_ready_or_start_compiling()
    assert started == ["no_such_module"]


def test_one_process_compiles_at_a_time(tmp_path, monkeypatch):
    assert _claim_compilation(tmp_path)
    assert not _claim_compilation(tmp_path)
    monkeypatch.setattr(compiled, "_STALE_LOCK_SECONDS", -1.0)  # every running compilation is considered dead
    assert _claim_compilation(tmp_path)


_LATER = """
import time
from kquery_spark.kernels.compiled import _WARMUP_CHUNKS, FILE_LOOPS

FILE_LOOPS.load_in_background()  # no request yet
assert [FILE_LOOPS.kernels() for _ in range(_WARMUP_CHUNKS)] == [None] * _WARMUP_CHUNKS
time.sleep(0.5)
assert FILE_LOOPS.kernels() is None
for _ in range(2400):
    if FILE_LOOPS.kernels() is not None:
        break
    time.sleep(0.1)
print(FILE_LOOPS.kernels().__name__)
"""


@exhaustive
def test_a_thread_looks_for_kernels_once_many_chunks_were_asked_for(compiled_cache):
    assert run(_LATER, compiled_cache) == "kquery_spark.kernels.loops"


@pytest.mark.parametrize(
    ("loops", "name"),
    [
        *(
            (FILE_LOOPS, name)
            for name in (
                "decode_indices",
                "decode_selected_indices",
                "filter_chunk",
                "filter_indices",
                "filter_selected_rows",
                "page_table",
                "decode_values",
                "decode_strings",
                "separators",
                "field_strings",
            )
        ),
        *(
            (JSON_LOOPS, name)
            for name in (
                "json_values",
                "json_matches",
                "json_lengths",
                "json_names",
                "json_entries",
                "json_variants",
            )
        ),
        *((AGGREGATE_LOOPS, name) for name in ("insert", "number_codes", "sum_groups")),
        *(
            (VARIANT_LOOPS, name)
            for name in ("variant_values", "variant_strings", "copy_slices", "rebuilt_variants")
        ),
    ],
)
def test_kernels_let_other_threads_run(loops, name):
    kernels = loops.compile_now()
    assert kernels is not None
    assert getattr(kernels, name).targetoptions["nogil"]


def test_a_compilation_removes_loops_that_were_not_used_for_a_month(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(compiled, "_cache_directory", lambda module: tmp_path / module.rpartition(".")[2])
    monkeypatch.setattr(CompiledLoops, "_import_package", lambda self, _: ModuleType(self.package))
    unused, used, new, other = "0" * 16, "1" * 16, "a" * 16, "other"
    for name in (unused, used, new, other):
        (tmp_path / name / "loops").mkdir(parents=True)
    month_ago = time.time() - 31 * 86_400
    for name in (unused, used, other):
        (tmp_path / name / "ready").touch()
        for path in (*(tmp_path / name).iterdir(), tmp_path / name):
            os.utime(path, (month_ago, month_ago))
    CompiledLoops(used).load()
    assert CompiledLoops(new).compile_now() is not None
    assert {path.name for path in tmp_path.iterdir()} == {new, used, other}
    assert (tmp_path / used / "loops").exists()


def test_the_name_of_the_cache_depends_on_every_source_that_is_compiled():
    """Otherwise, stale machine code would run after a change of a module outside of a package of loops."""
    kernels = Path(compiled.__file__).parent
    imported = set()
    for loops in ALL_LOOPS:
        for source in (kernels / loops.package).glob("*.py"):
            for node in ast.walk(ast.parse(source.read_text())):
                if isinstance(node, ast.ImportFrom) and node.module == "kquery_spark.kernels":
                    imported.update(f"{name.name}.py" for name in node.names)
                elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("kquery_spark."):
                    assert str(node.module).startswith("kquery_spark.kernels."), (
                        f"{source} imports {node.module}"
                    )
                    module = str(node.module).removeprefix("kquery_spark.kernels.")
                    if module.partition(".")[0] != loops.package:
                        imported.add(f"{module}.py")
    assert imported == set(_SHARED_SOURCES)


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_cache_that_others_can_write_to_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    directory = _cache_directory(PACKAGE)
    assert directory is not None and directory.stat().st_mode & 0o777 == 0o700
    for place, mode in ((directory, 0o720), (directory, 0o702), (directory.parent, 0o777)):
        before = place.stat().st_mode
        place.chmod(mode)
        assert _cache_directory(PACKAGE) is None, "numba would unpickle what others put there"
        place.chmod(before)
    assert _cache_directory(PACKAGE) == directory
    monkeypatch.setattr(os, "getuid", lambda: directory.stat().st_uid + 1)
    assert _cache_directory(PACKAGE) is None
